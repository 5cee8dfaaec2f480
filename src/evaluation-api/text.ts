/** The first `most` code points of a text. */
export function cutCodePoints(text: string, most: number): string {
  if (text.length <= most) return text;
  let end = 0;
  for (let count = 0; count < most && end < text.length; count += 1) {
    end += (text.codePointAt(end) ?? 0) > 0xff_ff ? 2 : 1;
  }
  return text.slice(0, end);
}

/** As much of a well-formed text as fits into `most` bytes of UTF-8. */
export function cutUtf8(text: string, most: number): string {
  if (text.length * 3 <= most) return text;
  return text.slice(0, new TextEncoder().encodeInto(text, new Uint8Array(most)).read);
}
