import type { Scrub } from '../domain/scrub.ts';

const LONGEST_ERROR_TEXT = 2048;
const DEEPEST_CAUSE = 4;
const DEEPEST_VALUE = 8;

/**
 * The fields as they may be printed: every text, however deep, without a key and well-formed, every error described
 * by type, message, code and causes. Values are scrubbed, not the finished line: JSON escapes what a key may contain.
 */
export function presentFields(
  fields: Readonly<Record<string, unknown>>,
  scrub: Scrub,
): Record<string, unknown> {
  const clean: Scrub = (text, enough) => scrub(text, enough).toWellFormed();
  return presentObject(fields, clean, 0);
}

function presentObject(value: object, clean: Scrub, depth: number): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, present(member, clean, depth + 1)]),
  );
}

function present(value: unknown, clean: Scrub, depth: number): unknown {
  if (typeof value === 'string') return clean(value);
  if (value instanceof Error) return describeError(value, clean, 0);
  if (typeof value !== 'object' || value === null) return value;
  if (depth > DEEPEST_VALUE) return '[deeper]';
  if (Array.isArray(value)) return value.map((member) => present(member, clean, depth + 1));
  return presentObject(value, clean, depth);
}

function describeError(error: unknown, clean: Scrub, depth: number): Record<string, unknown> {
  const text = (value: unknown): string | undefined =>
    typeof value === 'string' || typeof value === 'number'
      ? clean(String(value), LONGEST_ERROR_TEXT).slice(0, LONGEST_ERROR_TEXT).toWellFormed()
      : undefined;
  if (!(error instanceof Error)) return { type: typeof error, message: text(error) };
  const code = 'code' in error ? text(error.code) : undefined;
  const foreseen = code !== undefined || 'reason' in error;
  return {
    type: text(error.name),
    message: text(error.message),
    code,
    cause:
      error.cause === undefined || depth === DEEPEST_CAUSE
        ? undefined
        : describeError(error.cause, clean, depth + 1),
    // Only what nobody foresaw needs to say where it came from.
    stack: foreseen || depth > 0 ? undefined : text(error.stack),
  };
}
