import { closest } from '../suggest.ts';
import type { Checked } from './address.ts';
import { actualValue } from '../redaction.ts';

let usual: ReadonlySet<string> | undefined;

/** An IANA time zone as it is usually spelled. Offsets such as `+01:00` know no daylight saving and are no zones. */
export function parseTimezone(text: string): Checked<string> {
  usual ??= new Set(['UTC', ...Intl.supportedValuesOf('timeZone')]);
  // Forty times as fast, where thousands of projects have one.
  if (usual.has(text)) return { value: text };
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
