import { z } from 'zod';
import { DURATION_PATTERN } from '../../domain/duration.ts';
import { PROMPT_STATUSES } from '../../domain/status.ts';
import { EVENT_ID, EVENT_TYPES } from '../events/event.ts';
import { RequestError } from '../request/error.ts';

const MAX_LIMIT = 1000;
const A_LIMIT = `must be a whole number from 1 to ${MAX_LIMIT}`;
const A_STATUS = `must be one of ${PROMPT_STATUSES.join(', ')}`;
const A_TYPE = `must be one of ${EVENT_TYPES.join(', ')}`;
const NOT_EMPTY = 'must not be empty';

// Parses and describes the parameters of the API. Each message follows the name of its parameter.

export const project = z
  .string()
  .min(1, NOT_EMPTY)
  .optional()
  .describe('Restricts rows to this project. It is configured, or removed and still in the store.');

export const status = z
  .string()
  .transform((text) => text.toUpperCase())
  .pipe(z.enum(PROMPT_STATUSES, A_STATUS))
  .optional()
  .describe('Restricts rows to prompts in this status; case is ignored.');

export const cause = z
  .string()
  .regex(/^[0-9a-fA-F]{16}$/, 'must be 16 hexadecimal digits')
  .toLowerCase()
  .optional()
  .describe('Restricts rows to failures with this cause; case is ignored.');

export const since = z
  .string()
  .regex(new RegExp(DURATION_PATTERN), 'must be a duration such as 30m, 24h or 7d')
  .default('24h')
  .describe('How far back failures are counted, from now: a duration such as 30m, 24h or 7d.');

export const limit = z
  .string()
  .regex(/^\d+$/, A_LIMIT)
  .transform(Number)
  .pipe(z.int(A_LIMIT).min(1, A_LIMIT).max(MAX_LIMIT, A_LIMIT))
  .default(100)
  .describe('Maximum number of rows; an answer with long rows ends earlier.');

export const cursor = z
  .string()
  .min(1, NOT_EMPTY)
  .optional()
  .describe('The `next_cursor` of an earlier answer of the same path; continues after it.');

export const type = z
  .enum(EVENT_TYPES, A_TYPE)
  .optional()
  .describe('Restricts the stream to events of this type.');

export const after = z
  .string()
  .regex(EVENT_ID, 'must be the id of an event, such as t0.f0 for the oldest one')
  .optional()
  .describe(
    'Starts after the event with this id; `t0.f0` starts with the oldest event. A `Last-Event-ID` header overrides it.',
  );

/**
 * Parses the parameters of a request.
 * @throws {RequestError} if a parameter is unknown, invalid or given twice
 */
export function readParameters<Known extends z.ZodObject>(
  url: string,
  known: Known,
): z.output<Known> {
  const names = Object.keys(known.shape);
  const given = new Map<string, string>();
  for (const [name, value] of new URL(url).searchParams) {
    if (!names.includes(name)) {
      throw new RequestError(
        400,
        `unknown parameter ${JSON.stringify(name)}: ${describeNames(names)}`,
      );
    }
    if (given.has(name)) throw new RequestError(400, `${name} is given more than once`);
    given.set(name, value);
  }
  const read = known.safeParse(Object.fromEntries(given));
  if (read.success) return read.data;
  const faults = read.error.issues.map(({ path, message }) => `${path.join('.')} ${message}`);
  throw new RequestError(400, faults.join('; '));
}

function describeNames(names: readonly string[]): string {
  return names.length === 0
    ? 'this path takes no parameters'
    : `this path takes ${names.join(', ')}`;
}
