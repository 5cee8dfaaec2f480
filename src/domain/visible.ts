/**
 * What could move a terminal's cursor or colour it, end a line, turn the reading direction, hide, or is half a character.
 * Joiners are part of ordinary words.
 */
const UNSAFE = /[[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]--[\u200c\u200d]]/gv;
/** The unsafe characters that JSON does not escape. */
const UNSAFE_IN_JSON = /[[\p{Cf}\p{Zl}\p{Zp}\u007f-\u009f]--[\u200c\u200d]]/gv;

/** A text of unknown origin on one line: what is unsafe on a terminal is shown as an escape such as `\u001b`. */
export function visible(text: string): string {
  return text.replace(UNSAFE, escape);
}

/** JSON text with escapes in the place of what is unsafe on a terminal or in a log: its value stays what it is. */
export function visibleJson(json: string): string {
  return json.replace(UNSAFE_IN_JSON, escapeUnits);
}

/** Cache of escapes: Unicode has few unsafe characters. */
const escapes = new Map<string, string>();

function escape(character: string): string {
  return SHORT[character] ?? escapeUnits(character);
}

const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

function escapeUnits(character: string): string {
  let escaped = escapes.get(character);
  if (escaped === undefined) {
    const units = character
      .split('')
      .map((unit) => unit.charCodeAt(0).toString(16).padStart(4, '0'));
    escaped = `\\u${units.join('\\u')}`;
    escapes.set(character, escaped);
  }
  return escaped;
}
