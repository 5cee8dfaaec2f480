/**
 * Encodes a text for PostgreSQL, which cannot store U+0000: U+0000 becomes U+0001 U+0001, and U+0001 becomes U+0001 U+0002.
 * Different texts stay different and in the same order. A lone surrogate becomes U+FFFD, as in SQLite.
 */
export function toStored(text: string): string;
export function toStored(text: string | undefined): string | null;
export function toStored(text: string | undefined): string | null {
  if (text === undefined) return null;
  const whole = text.toWellFormed();
  return whole.includes('\u0000') || whole.includes('\u0001')
    ? whole.replaceAll('\u0001', '\u0001\u0002').replaceAll('\u0000', '\u0001\u0001')
    : whole;
}

/** Decodes a stored text. */
export function fromStored(text: string): string {
  return text.includes('\u0001')
    ? text.replaceAll('\u0001\u0001', '\u0000').replaceAll('\u0001\u0002', '\u0001')
    : text;
}

/** Parses JSON and decodes the stored texts in it. PostgreSQL writes U+0001 as an escape there. */
export function parseStored(json: string): unknown {
  return json.includes('\\u0001')
    ? JSON.parse(json, (_, value: unknown) =>
        typeof value === 'string' ? fromStored(value) : value,
      )
    : JSON.parse(json);
}
