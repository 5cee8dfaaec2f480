import { didYouMean, closest } from './suggest.ts';
import type { Checked } from './address.ts';

/** An IANA time zone as it is usually spelled. Offsets such as `+01:00` know no daylight saving and are no zones. */
export function parseTimezone(text: string): Checked<string> {
  const known = /^[+-]/.test(text) ? undefined : spellingOf(text);
  if (known !== undefined) return { value: known };
  const suggestion = closest(text, Intl.supportedValuesOf('timeZone'));
  return { fault: `must be a time zone such as UTC or Europe/Berlin${didYouMean(suggestion)}` };
}

function spellingOf(text: string): string | undefined {
  try {
    const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions();
    return timeZone.toLowerCase() === text.toLowerCase() ? timeZone : text;
  } catch {
    return undefined;
  }
}
