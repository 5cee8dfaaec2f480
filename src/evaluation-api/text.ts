import type { Scrub } from '../domain/scrub.ts';

/** The first `max` code points of a text. */
export function cutCodePoints(text: string, max: number): string {
  if (text.length <= max) return text;
  let end = 0;
  for (let count = 0; count < max && end < text.length; count += 1) {
    end += (text.codePointAt(end) ?? 0) > 0xff_ff ? 2 : 1;
  }
  return text.slice(0, end);
}

/**
 * The first `max` code points of a text that others wrote, without keys and well-formed. Scrubbed before it is cut: half a
 * key is one, too. What that costs depends on `max`, not on the length of a text that shows no keys.
 */
export function cleanText(text: string, max: number, scrub: Scrub): string {
  // No code point takes more than two characters.
  return cutCodePoints(scrub(text, 2 * max).toWellFormed(), max);
}

/** As much of a well-formed text as fits into `most` bytes of UTF-8. */
export function cutUtf8(text: string, most: number): string {
  if (text.length * 3 <= most) return text;
  return text.slice(0, new TextEncoder().encodeInto(text, new Uint8Array(most)).read);
}
