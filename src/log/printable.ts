import type { Scrub } from '../domain/scrub.ts';

const MAX_ERROR_TEXT_LENGTH = 2048;
const MAX_CAUSES = 4;
const MAX_DEPTH = 8;

/**
 * Returns a copy that is safe to print: every text at any depth is scrubbed of keys and well-formed, and every error is
 * described by type, message, code and causes. Values are scrubbed before JSON escapes characters that a key may contain.
 */
export function printableFields(
  fields: Readonly<Record<string, unknown>>,
  scrub: Scrub,
): Record<string, unknown> {
  const clean: Scrub = (text, maxLength) => scrub(text, maxLength).toWellFormed();
  return printableObject(fields, clean, 0);
}

function printableObject(value: object, clean: Scrub, depth: number): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, printable(member, clean, depth + 1)]),
  );
}

function printable(value: unknown, clean: Scrub, depth: number): unknown {
  if (typeof value === 'string') return clean(value);
  if (value instanceof Error) return describeError(value, clean, 0);
  if (typeof value !== 'object' || value === null) return value;
  if (depth > MAX_DEPTH) return '[nested too deeply]';
  if (Array.isArray(value)) return value.map((member) => printable(member, clean, depth + 1));
  return printableObject(value, clean, depth);
}

function describeError(error: unknown, clean: Scrub, depth: number): Record<string, unknown> {
  const text = (value: unknown): string | undefined =>
    typeof value === 'string' || typeof value === 'number'
      ? clean(String(value), MAX_ERROR_TEXT_LENGTH).slice(0, MAX_ERROR_TEXT_LENGTH).toWellFormed()
      : undefined;
  if (!(error instanceof Error)) return { type: typeof error, message: text(error) };
  const code = 'code' in error ? text(error.code) : undefined;
  const isExpected = code !== undefined || 'reason' in error;
  return {
    type: text(error.name),
    message: text(error.message),
    code,
    cause:
      error.cause === undefined || depth === MAX_CAUSES
        ? undefined
        : describeError(error.cause, clean, depth + 1),
    // Only a bug needs a stack.
    stack: isExpected || depth > 0 ? undefined : text(error.stack),
  };
}
