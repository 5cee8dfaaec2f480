import { closest } from '../suggest.ts';
import type { Checked } from './checked.ts';
import { actualValue } from '../redaction.ts';

let usualNames: ReadonlySet<string> | undefined;

/** Parses an IANA time zone and returns its usual spelling. Offsets such as `+01:00` have no daylight saving and are rejected. */
export function parseTimezone(text: string): Checked<string> {
  usualNames ??= new Set(['UTC', ...Intl.supportedValuesOf('timeZone')]);
  // Forty times faster than the check below; thousands of projects may have a zone.
  if (usualNames.has(text)) return { value: text };
  const known = /^[+-]/.test(text) ? undefined : spellingOf(text);
  if (known !== undefined) return { value: known };
  return {
    fault: `must be a time zone such as UTC or Europe/Berlin${actualValue(text)}`,
    hint: () => closest(text, Intl.supportedValuesOf('timeZone')),
  };
}

function spellingOf(text: string): string | undefined {
  try {
    const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions();
    return timeZone.toLowerCase() === text.toLowerCase() ? timeZone : text;
  } catch {
    return undefined;
  }
}
