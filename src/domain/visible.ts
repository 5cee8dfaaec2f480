/**
 * Characters that can move the cursor, change colours, end a line, reverse the reading direction or be invisible, and lone
 * surrogates. Joiners are excluded: ordinary words contain them.
 */
const UNSAFE = /[[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]--[\u200c\u200d]]/gv;
/** The unsafe characters that JSON does not escape. */
const UNSAFE_IN_JSON = /[[\p{Cf}\p{Zl}\p{Zp}\u007f-\u009f]--[\u200c\u200d]]/gv;

/** Replaces what not every store can hold by U+FFFD: U+0000 and lone surrogates. */
export function cleanUnicode(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\uFFFD');
}

/** Returns untrusted text on one line, with unsafe characters escaped, such as `\u001b`. */
export function visible(text: string): string {
  return text.replace(UNSAFE, escape);
}

/** Returns JSON text with unsafe characters escaped; its value stays the same. */
export function visibleJson(json: string): string {
  return json.replace(UNSAFE_IN_JSON, escapeUnits);
}

const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

function escape(character: string): string {
  return SHORT[character] ?? escapeUnits(character);
}

function escapeUnits(character: string): string {
  return character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');
}

/** Nothing that is seen. */
const BLANK = /^[\s\p{DI}\u2800]+$/u;

/** Returns untrusted text on one line, as {@link visible} does, with `⏎` for each line break. */
export function onOneLine(text: string): string {
  return text.split('\n').map(visible).join('⏎');
}

/** Returns the first `length` characters of a text, in quotes if nothing of them is seen. */
export function beginningOf(
  text: string,
  length: number,
): { readonly text: string; readonly isWhole: boolean } {
  const start = Array.from(text.slice(0, 2 * length))
    .slice(0, length)
    .join('');
  return { text: BLANK.test(start) ? `"${start}"` : start, isWhole: start.length === text.length };
}
