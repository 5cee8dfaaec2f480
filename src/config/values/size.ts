const BYTES: Readonly<Record<string, number>> = {
  B: 1,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
};

/** Grammar of a size. */
export const SIZE_PATTERN = '^(\\d+)(B|KiB|MiB|GiB)$';

const SIZE = new RegExp(SIZE_PATTERN);

/** Parses `512KiB` or `64MiB` to bytes; returns undefined for any other text (docs/specification.md#durations-and-sizes). */
export function parseSize(text: string): number | undefined {
  const [, digits, unit] = SIZE.exec(text) ?? [];
  const bytes = BYTES[unit ?? ''];
  return digits === undefined || bytes === undefined ? undefined : Number(digits) * bytes;
}

/** Suggests a size for an invalid one, such as `64MiB` for `64MB`; undefined if there is none. */
export function suggestSize(text: string): string | undefined {
  const [, digits, prefix] = /^(\d+)\s*([kmg]?)(?:i?b|bytes?)?$/i.exec(text) ?? [];
  if (digits === undefined || prefix === undefined) return undefined;
  return `${digits}${prefix === '' ? 'B' : `${prefix.toUpperCase()}iB`}`;
}
