const CLOSING: Readonly<Record<string, string>> = {
  '“': '”',
  '”': '”',
  '„': '“',
  '‟': '”',
  '‘': '’',
  '‚': '‘',
  '‛': '’',
  '«': '»',
  '»': '«',
  '‹': '›',
  '「': '」',
  '『': '』',
  '《': '》',
  '〈': '〉',
  '〝': '〞',
  '❝': '❞',
  '＂': '＂',
};

/** Returns whether a quote begins at `at`, and not an apostrophe. */
export function isQuoteAt(text: string, at: number): boolean {
  const character = text[at] ?? '';
  if (character === '"' || character === '`' || CLOSING[character] !== undefined) return true;
  return character === "'" && at + 1 < text.length && !isWordCharacter(text[at - 1]);
}

/** Returns the quote at `at` as it is written: three of them are one. */
export function markAt(text: string, at: number): string {
  const quote = text[at] ?? '';
  const triple = quote.repeat(3);
  return CLOSING[quote] === undefined && text.startsWith(triple, at) ? triple : quote;
}

/**
 * Returns where the quote is closed that begins before `start`, or -1. Models quote within quotes without escaping them,
 * so a quote that stands before a word opens another one.
 */
export function endOfQuote(text: string, start: number, mark: string): number {
  if (mark.length === 3 || CLOSING[mark] !== undefined) {
    return text.indexOf(CLOSING[mark] ?? mark, start);
  }
  let nesting = 0;
  let lastEnd = -1;
  for (let at = start; at < text.length; at += 1) {
    const character = text[at];
    if (character === '\\') {
      at += 1;
    } else if (character === mark) {
      if (mark !== '`' && isWordCharacter(text[at + 1])) {
        if (at > start && /[\s([{]/.test(text[at - 1] ?? '')) nesting += 1;
      } else if (nesting === 0) {
        return at;
      } else {
        nesting -= 1;
        lastEnd = at;
      }
    }
  }
  return lastEnd;
}

/** Returns whether a character may belong to a word. */
export function isWordCharacter(character: string | undefined): boolean {
  return character !== undefined && /[\p{L}\p{N}_]/u.test(character);
}
