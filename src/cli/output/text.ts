import { isoTime } from '../../rows/fields.ts';

const PLAIN = /^[ -~]*$/;
const NO_WIDTH = /^(?:\p{Mn}|\p{Me}|\u200c|\u200d)$/v;
const WIDE =
  /^(?:[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{20000}-\u{3fffd}]|\p{Emoji_Presentation})$/v;

/** Returns the approximate number of terminal columns of a text. East Asian characters and emoji take two. */
export function widthOf(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += characterWidth(character);
  return width;
}

/** Shortens a text to at most `width` columns (1 or more). A shortened text ends with `…`. */
export function truncate(text: string, width: number): string {
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

/** Returns a word as a POSIX shell reads it. */
export function quoteWord(word: string): string {
  return /^[\w./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Formats a time as ISO 8601 in UTC, in whole seconds. `ms` is epoch ms. */
export function formatTime(ms: number): string {
  return `${isoTime(ms).slice(0, 19)}Z`;
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
  ['ms', 1],
] as const;

/**
 * Formats a duration in ms as the configuration writes it: `1h30m`, `500ms`, `0s`. With `maxUnits` it is rounded down to so
 * many units, from its largest one on.
 */
export function formatDuration(ms: number, maxUnits: number = UNITS.length): string {
  const first = UNITS.findIndex(([, length]) => ms >= length);
  if (first === -1) return '0s';
  let text = '';
  let left = ms;
  for (const [unit, length] of UNITS.slice(first, first + maxUnits)) {
    const count = Math.floor(left / length);
    left -= count * length;
    if (count > 0) text += `${count}${unit}`;
  }
  return text;
}

/** Formats a time in a time zone, with its offset from UTC: `2026-03-29T09:00:00+02:00`. */
export function formatZonedTime(ms: number, timezone: string): string {
  const parts = formatFor(timezone).formatToParts(ms);
  const part = Object.fromEntries(parts.map(({ type, value }) => [type, value]));
  const offset = part['timeZoneName']?.replace('GMT', '') || '+00:00';
  return `${part['year']}-${part['month']}-${part['day']}T${part['hour']}:${part['minute']}:${part['second']}${offset}`;
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** Caches formats: creating one takes fifty times as long as using it. */
function formatFor(timezone: string): Intl.DateTimeFormat {
  const known = formats.get(timezone);
  if (known !== undefined) return known;
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: timezone,
    timeZoneName: 'longOffset',
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
  });
  formats.set(timezone, format);
  return format;
}
