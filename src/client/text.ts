import type { Scrub } from '../domain/scrub.ts';

/** Returns the first `max` code points of a text. */
export function cutCodePoints(text: string, max: number): string {
  if (text.length <= max) return text;
  let end = 0;
  for (let count = 0; count < max && end < text.length; count += 1) {
    end += (text.codePointAt(end) ?? 0) > 0xff_ff ? 2 : 1;
  }
  return text.slice(0, end);
}

/**
 * Returns the first `max` code points of untrusted text, scrubbed of keys and well-formed. Scrubs before it cuts, as
 * half a key is a secret too.
 */
export function cleanText(text: string, max: number, scrub: Scrub): string {
  return cutCodePoints(scrub(text).toWellFormed(), max);
}

/** Returns the longest prefix of a well-formed text that fits into `maxBytes` of UTF-8. */
export function cutUtf8(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes) return text;
  return text.slice(0, new TextEncoder().encodeInto(text, new Uint8Array(maxBytes)).read);
}
