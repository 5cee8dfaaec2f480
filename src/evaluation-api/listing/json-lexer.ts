const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const HEXADECIMAL = /[0-9a-fA-F]{4}/y;
const LITERALS = ['true', 'false', 'null'] as const;
const ESCAPED = '"\\/bfnrt';

/** Moves over a JSON text token by token, and builds nothing. Its methods throw a `SyntaxError` where the text is no JSON. */
export interface JsonLexer {
  /** Where the next token, or white space before it, begins. */
  readonly position: () => number;
  /** The first character of the next token; empty at the end of the text. */
  readonly peek: () => string;
  /** Moves behind this character if it is next. */
  readonly skip: (character: string) => boolean;
  /**
   * Moves on within a string whose opening quote was skipped, and behind its end, but by no more than so many characters.
   * Returns whether the string has ended.
   */
  readonly skipString: (maxLength: number) => boolean;
  /** Moves behind a number, `true`, `false` or `null`. */
  readonly skipLiteral: () => void;
}

export function createJsonLexer(text: string): JsonLexer {
  let at = 0;

  /** Moves behind what the sticky pattern takes here. */
  function take(pattern: RegExp): void {
    pattern.lastIndex = at;
    if (!pattern.test(text)) notJson();
    at = pattern.lastIndex;
  }

  function peek(): string {
    if (text.charCodeAt(at) <= 0x20) take(SPACE);
    return text[at] ?? '';
  }

  function skipEscape(): void {
    at += 1;
    const character = text[at] ?? notJson();
    if (character === 'u') {
      at += 1;
      take(HEXADECIMAL);
      at -= 1;
    } else if (!ESCAPED.includes(character)) notJson();
  }

  return {
    position: () => at,
    peek,
    skip: (character) => {
      if (peek() !== character) return false;
      at += 1;
      return true;
    },
    skipString: (maxLength) => {
      const end = at + maxLength;
      for (; text[at] !== '"'; at += 1) {
        if (at >= end) return false;
        if (text[at] === '\\') skipEscape();
        // Also behind the end, where there is no number.
        else if (!(text.charCodeAt(at) >= 0x20)) notJson();
      }
      at += 1;
      return true;
    },
    skipLiteral: () => {
      const literal = LITERALS.find((each) => text.startsWith(each, at));
      if (literal === undefined) take(NUMBER);
      else at += literal.length;
    },
  };
}

export function notJson(): never {
  throw new SyntaxError('not JSON');
}
