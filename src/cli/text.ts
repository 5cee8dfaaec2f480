/** What could move the cursor, end the line, turn the reading direction or hide; joiners are part of ordinary words. */
const UNSAFE = /[[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]--[\u200c\u200d]]/gv;
const ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** A text of unknown origin on one line, with characters that could fool a terminal shown as escapes. */
export function visible(text: string): string {
  return text.replace(UNSAFE, (character) => ESCAPES[character] ?? escape(character));
}

/** JSON on one line; the same characters are escaped as JSON does, so that the value stays what it is. */
export function visibleJson(value: object): string {
  return JSON.stringify(value).replace(UNSAFE, escape);
}

function escape(character: string): string {
  return Array.from(
    { length: character.length },
    (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`,
  ).join('');
}

const PLAIN = /^[ -~]*$/;
const NO_WIDTH = /^(?:\p{Mn}|\p{Me}|\u200c|\u200d)$/v;
const WIDE =
  /^(?:[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{20000}-\u{3fffd}]|\p{Emoji_Presentation})$/v;

/** Columns that a text takes on a terminal, roughly: East Asian characters and emoji take two. */
export function widthOf(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += characterWidth(character);
  return width;
}

/** A text in at most so many columns (1 or more); what does not fit gives way to `…`. */
export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let kept = '';
  let left = width - 1;
  for (const character of text) {
    left -= characterWidth(character);
    if (left < 0) break;
    kept += character;
  }
  return `${kept}…`;
}

function characterWidth(character: string): number {
  if (NO_WIDTH.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}

/** A time for people: ISO 8601 UTC, whole seconds. `ms` is epoch ms. */
export function timeText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

/** The same in a time zone, with its offset from UTC: `2026-03-29T09:00:00+02:00`. */
export function zonedTimeText(ms: number, timezone: string): string {
  const parts = new Intl.DateTimeFormat('en-US', {
    timeZone: timezone,
    timeZoneName: 'longOffset',
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
  }).formatToParts(ms);
  const part = Object.fromEntries(parts.map(({ type, value }) => [type, value]));
  const offset = part['timeZoneName']?.replace('GMT', '') || '+00:00';
  return `${part['year']}-${part['month']}-${part['day']}T${part['hour']}:${part['minute']}:${part['second']}${offset}`;
}
