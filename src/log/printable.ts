import { isBug } from '../monitor/errors.ts';

const MAX_ERROR_TEXT_LENGTH = 2048;
const MAX_CAUSES = 4;
const MAX_DEPTH = 8;

/**
 * Returns a copy that is safe to print: every text at any depth is well-formed, and every error is described by type,
 * message, code and causes. Texts of the service are scrubbed of keys where they enter.
 */
export function printableFields(
  fields: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  return printableObject(fields, 0);
}

function printableObject(value: object, depth: number): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, printable(member, depth + 1)]),
  );
}

function printable(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return value.toWellFormed();
  if (value instanceof Error) return describeError(value, 0);
  if (typeof value !== 'object' || value === null) return value;
  if (depth > MAX_DEPTH) return '[nested too deeply]';
  if (Array.isArray(value)) return value.map((member) => printable(member, depth + 1));
  return printableObject(value, depth);
}

function describeError(error: unknown, depth: number): Record<string, unknown> {
  const text = (value: unknown): string | undefined =>
    typeof value === 'string' || typeof value === 'number'
      ? String(value).slice(0, MAX_ERROR_TEXT_LENGTH).toWellFormed()
      : undefined;
  if (!(error instanceof Error)) return { type: typeof error, message: text(error) };
  const code = 'code' in error ? text(error.code) : undefined;
  return {
    type: text(error.name),
    message: text(error.message),
    code,
    cause:
      error.cause === undefined || depth === MAX_CAUSES
        ? undefined
        : describeError(error.cause, depth + 1),
    // Only a bug needs a stack.
    stack: depth === 0 && isBug(error) ? text(error.stack) : undefined,
  };
}
