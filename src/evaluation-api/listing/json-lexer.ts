const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const HEXADECIMAL = /[0-9a-fA-F]{4}/y;
const LITERALS = ['true', 'false', 'null'] as const;
const ESCAPED = '"\\/bfnrt';

/** Reads JSON text token by token without building values. Methods throw a `SyntaxError` where the text is not JSON. */
export interface JsonLexer {
  /** Returns the position of the next token or of white space before it. */
  readonly position: () => number;
  /** Returns the first character of the next token; empty at the end of the text. */
  readonly peek: () => string;
  /** Skips this character if it is next, and returns whether it was. */
  readonly skip: (character: string) => boolean;
  /**
   * Skips the rest of a string after its opening quote, at most `maxLength` characters. Returns whether the string has
   * ended.
   */
  readonly skipString: (maxLength: number) => boolean;
  /** Skips a number, `true`, `false` or `null`. */
  readonly skipLiteral: () => void;
}

export function createJsonLexer(text: string): JsonLexer {
  let at = 0;

  /** Skips the match of a sticky pattern. */
  function take(pattern: RegExp): void {
    pattern.lastIndex = at;
    if (!pattern.test(text)) throwNotJson();
    at = pattern.lastIndex;
  }

  function peek(): string {
    if (text.charCodeAt(at) <= 0x20) take(SPACE);
    return text[at] ?? '';
  }

  function skipEscape(): void {
    at += 1;
    const character = text[at] ?? throwNotJson();
    if (character === 'u') {
      at += 1;
      take(HEXADECIMAL);
      at -= 1;
    } else if (!ESCAPED.includes(character)) throwNotJson();
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
        // Negated, so that NaN, the code after the end of the text, is rejected too.
        else if (!(text.charCodeAt(at) >= 0x20)) throwNotJson();
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

export function throwNotJson(): never {
  throw new SyntaxError('not JSON');
}
