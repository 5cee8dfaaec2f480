import { HTTPException } from 'hono/http-exception';
import { z } from 'zod';
import { A_MOMENT, MOMENT_PATTERN } from '../../domain/options.ts';
import { PROMPT_STATUSES } from '../../domain/status.ts';
import {
  causeSchema,
  errorSchema,
  experimentSchema,
  failureSchema,
  finishSchema,
  pollSchema,
  projectSchema,
  promptSchema,
  resetSchema,
  transitionSchema,
} from '../../rows/schema.ts';
import { EVENT_ID, EVENT_TYPES } from '../events/page.ts';

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

const status = z
  .string()
  .transform((text) => text.toUpperCase())
  .pipe(z.enum(PROMPT_STATUSES, A_STATUS))
  .optional()
  .describe('Restricts rows to prompts in this status; case is ignored.');

function label(name: string) {
  return z
    .string()
    .optional()
    .describe(
      `Restricts rows to prompts with this ${name} now; an empty text to those without one.`,
    );
}

const labels = {
  experiment: label('experiment'),
  dataset: label('dataset'),
  metric: label('metric'),
};

const cause = z
  .string()
  .regex(/^[0-9a-fA-F]{16}$/, 'must be 16 hexadecimal digits')
  .toLowerCase()
  .optional()
  .describe('Restricts rows to failures with this cause; case is ignored.');

const moment = z.string().regex(new RegExp(MOMENT_PATTERN), `must be ${A_MOMENT}`);
/** Restrict rows to a part of the history. */
const history = {
  since: moment.optional().describe(`Only what happened then and later: ${A_MOMENT}.`),
  until: moment.optional().describe(`Only what happened before: ${A_MOMENT}.`),
  prompt_id: z.string().min(1, NOT_EMPTY).optional().describe('Only rows of this prompt.'),
};

const limit = z
  .string()
  .regex(/^\d+$/, A_LIMIT)
  .transform(Number)
  .pipe(z.int(A_LIMIT).min(1, A_LIMIT).max(MAX_LIMIT, A_LIMIT))
  .default(100)
  .describe('Maximum number of rows; an answer with long rows ends earlier.');

const cursor = z
  .string()
  .min(1, NOT_EMPTY)
  .optional()
  .describe('The `next_cursor` of an earlier answer of the same path; continues after it.');

const type = z
  .enum(EVENT_TYPES, A_TYPE)
  .optional()
  .describe('Restricts the stream to events of this type.');

const after = z
  .string()
  .regex(EVENT_ID, 'must be the id of an event, such as t0.f0 for the oldest one')
  .optional()
  .describe(
    'Starts after the event with this id; `t0.f0` starts with the oldest event. A `Last-Event-ID` header overrides it.',
  );

/** Schemas that the OpenAPI document names. */
export const schemas = {
  Project: projectSchema,
  Experiment: experimentSchema,
  Prompt: promptSchema,
  Transition: transitionSchema,
  Failure: failureSchema,
  Cause: causeSchema,
  Finish: finishSchema,
  Poll: pollSchema,
  Reset: resetSchema,
  Error: errorSchema,
} as const;

/** What the parameters in paths are. A path with such parameters answers one row. */
export const pathParameters = {
  project: 'The id of the project.',
  prompt_id:
    'The id of the prompt. A path cannot end with `.` or `..`, so prompts with such an id have none.',
} as const;

/** Parameters and rows of each path under `/api/v1`: the API parses its parameters by this table (docs/api.md). */
export const operations = {
  '/projects': {
    summary:
      'Configured projects, with the health of their polls, their prompts by status and what is expected of them',
    parameters: z.object({}),
    gives: 'Project',
  },
  '/projects/{project}': {
    summary: 'One configured project',
    parameters: z.object({}),
    gives: 'Project',
  },
  '/experiments': {
    summary: 'Experiments with their prompts by status, last move first',
    parameters: z.object({
      project,
      experiment: z.string().min(1, NOT_EMPTY).optional().describe('Only this experiment.'),
      limit,
      cursor,
    }),
    gives: 'Experiment',
  },
  '/prompts': {
    summary: 'Prompts that are not gone, newest change first',
    parameters: z.object({ project, status, ...labels, limit, cursor }),
    gives: 'Prompt',
  },
  '/prompts/{project}/{prompt_id}': {
    summary: 'One prompt that is not gone',
    parameters: z.object({}),
    gives: 'Prompt',
  },
  '/transitions': {
    summary: 'Transitions of prompts and datasets, newest first',
    parameters: z.object({ project, ...history, ...labels, limit, cursor }),
    gives: 'Transition',
  },
  '/failures': {
    summary: 'Failures with their error_info, newest first',
    parameters: z.object({ project, ...history, ...labels, cause, limit, cursor }),
    gives: 'Failure',
  },
  '/causes': {
    summary: 'Causes of failures, most frequent first; all that are left out are one last row',
    parameters: z.object({
      project,
      ...labels,
      since: moment.default('24h').describe(`Since when failures are counted: ${A_MOMENT}.`),
      limit: limit.describe('Maximum number of causes; a last row `other` may follow them.'),
    }),
    gives: 'Cause',
  },
  '/config': {
    summary: 'The configuration in force, as its file has it, with `[redacted]` for secrets',
    parameters: z.object({}),
    gives: 'document',
  },
  '/openapi.json': {
    summary: 'This document',
    parameters: z.object({}),
    gives: 'document',
  },
  '/events': {
    summary: 'Transitions, failures and polls as they happen',
    parameters: z.object({ project, type, after }),
    gives: 'stream',
  },
} as const satisfies Record<
  string,
  { summary: string; parameters: z.ZodObject; gives: keyof typeof schemas | 'document' | 'stream' }
>;

/**
 * Parses the parameters of a request.
 * @throws {HTTPException} if a parameter is unknown, invalid or given twice
 */
export function readParameters<Known extends z.ZodObject>(
  url: string,
  known: Known,
): z.output<Known> {
  const names = Object.keys(known.shape);
  const given = new Map<string, string>();
  for (const [name, value] of new URL(url).searchParams) {
    if (!names.includes(name)) {
      const message = `unknown parameter ${JSON.stringify(name)}: ${describeNames(names)}`;
      throw new HTTPException(400, { message });
    }
    if (given.has(name))
      throw new HTTPException(400, { message: `${name} is given more than once` });
    given.set(name, value);
  }
  const read = known.safeParse(Object.fromEntries(given));
  if (read.success) return read.data;
  const faults = read.error.issues.map(({ path, message }) => `${path.join('.')} ${message}`);
  throw new HTTPException(400, { message: faults.join('; ') });
}

function describeNames(names: readonly string[]): string {
  return names.length === 0
    ? 'this path takes no parameters'
    : `this path takes ${names.join(', ')}`;
}
