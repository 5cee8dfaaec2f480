import { z } from 'zod';
import { EXPERIMENT_STATES } from '../domain/experiment.ts';
import { LIMIT_SOURCES } from '../domain/limits.ts';
import { NO_ERROR_INFO_REASONS } from '../domain/failure.ts';
import { DATASET_STATUSES, PROMPT_STATUSES, type PromptStatus } from '../domain/status.ts';
import { POLL_FAILURE_REASONS } from '../monitor/errors.ts';

// Declares each row of the API, the event stream and the commands once: the OpenAPI document is generated from the schemas, and
// fields.ts builds rows of their types.

const time = z.iso.datetime({ precision: 3 }).describe('UTC.');
const count = z.int().min(0);
const project = z.string().describe('The id of the project.');
const promptId = z.string().describe('The id of the prompt.');
const transitionId = z.int().min(1).describe('Increases with every transition; never reused.');
const label = (name: string) =>
  z.string().nullable().describe(`The ${name} that the service names; null without one.`);
const experiment = z.string().describe('The name of the experiment.');
const experimentNow = z
  .string()
  .nullable()
  .describe('The experiment to which it belongs now; null without one.');
const seconds = z.number().min(0).nullable();
const reason = z.enum(POLL_FAILURE_REASONS).nullable();

const counts: Readonly<Record<PromptStatus, typeof count>> = {
  PENDING: count,
  RUNNING: count,
  COMPLETED: count,
  FAILED: count,
  UNKNOWN: count,
};

export type ExpectationFields = z.output<typeof expectationSchema>;
const expectationSchema = z.object({
  limit_seconds: seconds.describe(
    'How long a prompt may stay in the status; null without a limit.',
  ),
  limit_source: z
    .enum(LIMIT_SOURCES)
    .nullable()
    .describe(
      'Where the limit comes from: the durations of earlier prompts, the configuration, or the default while too few durations are known. Null if the status has no limits, the project is not configured, or its durations have not been read yet.',
    ),
  typical_seconds: seconds.describe(
    'Median time in the status over the last 30 days; null while fewer than 20 durations are known.',
  ),
});

export type LastErrorFields = z.output<typeof lastErrorSchema>;
const lastErrorSchema = z.object({
  message: z.string(),
  url: z.string().nullable().describe('Address that was requested; null if no request was sent.'),
  status_code: z.int().nullable().describe('HTTP status code of the answer; null without one.'),
  location: z.string().nullable().describe('Target of a redirect, at most 300 characters.'),
  detail: z
    .string()
    .nullable()
    .describe('What the service said in its answer, on one line, at most 300 characters.'),
});

export type ProjectFields = z.output<typeof projectSchema>;
export const projectSchema = z
  .object({
    project,
    up: z.boolean().describe('Whether the last finished poll succeeded.'),
    consecutive_failures: count.describe('Number of failed polls since the last success.'),
    reason: reason.describe('Why the last finished poll failed.'),
    last_error: lastErrorSchema
      .nullable()
      .describe(
        'What failed in the last finished poll, without keys; null if it succeeded, or if this process has not polled the project since it started.',
      ),
    last_poll: time.nullable(),
    last_success: time.nullable(),
    next_poll: time.nullable(),
    prompts: z.object(counts).describe('Number of prompts that are not gone, by status.'),
    missing: count.describe(
      'Number of these prompts that were missing from the last complete listing.',
    ),
    team: z.string().nullable().describe('The team of the project; null without one.'),
    pause: z
      .object({
        until: time.nullable().describe('Null if only the configuration ends it.'),
        polls: z.enum(['stop', 'continue']).describe('Whether it is polled meanwhile.'),
      })
      .nullable()
      .describe('The pause or maintenance that lasts; null without one.'),
    expectations: z
      .object({ PENDING: expectationSchema, RUNNING: expectationSchema })
      .describe('How long prompts may stay in a status, and usually do.'),
    max_failure_ratio: z
      .number()
      .min(0)
      .max(0.8)
      .nullable()
      .describe('Share of the prompts that finish which may fail; null without an objective.'),
  })
  .describe('A configured project and its poll health.');

export type PromptFields = z.output<typeof promptSchema>;
export const promptSchema = z
  .object({
    project,
    prompt_id: promptId,
    prompt_name: z.string().nullable(),
    status: z.enum(PROMPT_STATUSES),
    status_raw: z.string().nullable().describe("The service's own text, if the status is UNKNOWN."),
    since: time.describe('Time when it was first seen in this status, UTC.'),
    missing: count.describe('Number of consecutive complete listings without this prompt.'),
    experiment: label('experiment'),
    dataset: label('dataset'),
    metric: label('metric'),
  })
  .extend(expectationSchema.shape)
  .describe('A prompt that is not gone.');

const transition = {
  transition_id: transitionId,
  time,
  project,
  experiment: experimentNow,
  from: z.enum(['NEW', ...DATASET_STATUSES]),
  to: z.enum(DATASET_STATUSES),
};

export type TransitionFields = z.output<typeof transitionSchema>;
export const transitionSchema = z
  .union([
    z.object({ ...transition, prompt_id: promptId }),
    z.object({ ...transition, dataset_id: z.string().describe('The id of the dataset.') }),
  ])
  .describe('A change of the status of a prompt or a dataset.');

export type FailureFields = z.output<typeof failureSchema>;
export const failureSchema = z
  .object({
    transition_id: transitionId,
    time: time.describe('Time of the transition, UTC.'),
    project,
    prompt_id: promptId,
    prompt_name: z.string().nullable().describe('The name when it failed; null without one.'),
    experiment: experimentNow,
    error_info: z
      .object({ error_id: z.string().nullable(), error_msg: z.string().nullable() })
      .nullable(),
    error_msg_truncated: z
      .boolean()
      .describe('Whether `error_msg` was longer than 8,192 bytes and was cut.'),
    reason: z.enum(NO_ERROR_INFO_REASONS).nullable().describe('Why there is no `error_info`.'),
    settled: z.boolean().describe('False while evalwatch still tries to fetch `error_info`.'),
    cause: z
      .string()
      .nullable()
      .describe(
        'Id of the cause, the same for failures with the same explanation; null while not settled, and if a worker of an earlier version settled the failure.',
      ),
  })
  .describe('A change of the status of a prompt to FAILED.');

export type ExperimentFields = z.output<typeof experimentSchema>;
export const experimentSchema = z
  .object({
    project,
    experiment,
    state: z
      .enum(EXPERIMENT_STATES)
      .describe(
        '`running` while a prompt is PENDING or RUNNING; `finished` once two polls in a row have seen none, after a move; `ended` otherwise.',
      ),
    prompts: z.object(counts).describe('Number of its prompts that are not gone, by status.'),
    first_move: time.nullable().describe('The first move since it was reopened, UTC.'),
    last_move: time.nullable(),
    ended: time.nullable().describe('The first poll without unfinished prompts, UTC.'),
    finished: time.nullable().describe('The poll that confirmed the end, UTC.'),
    duration_seconds: seconds.describe(
      'From the first move to the end, 0 if one poll saw both; null unless it is finished.',
    ),
  })
  .describe('The prompts of a project with the same experiment.');

export type FinishFields = z.output<typeof finishSchema>;
export const finishSchema = z
  .object({
    finish_id: z.int().min(1).describe('Increases with every finish; never reused.'),
    time: time.describe('Time of the poll that confirmed the end, UTC.'),
    project,
    experiment,
    prompts: z
      .object({ COMPLETED: count, FAILED: count, UNKNOWN: count })
      .describe('Number of its prompts that were not gone, by status.'),
    first_move: time.describe('The first move since it was reopened, UTC.'),
    ended: time.describe('The first poll without unfinished prompts, UTC.'),
    duration_seconds: z
      .number()
      .describe('From the first move to the end, 0 if one poll saw both.'),
  })
  .describe('An experiment that finished, as it was then.');

export type CauseFields = z.output<typeof causeSchema>;
export const causeSchema = z
  .object({
    cause: z
      .string()
      .describe(
        '16 hexadecimal digits; `other` for all causes that are left out, in the last row.',
      ),
    error_id: z.string().nullable().describe('Null without one, and for `other`.'),
    shape: z
      .string()
      .nullable()
      .describe(
        'The `error_msg` with `<*>` for what varies: one line of at most 200 characters, empty without an `error_msg`. Null for `other`.',
      ),
    count: z.int().min(1).describe('Number of settled failures.'),
    projects: z
      .int()
      .min(1)
      .nullable()
      .describe('Number of projects with such failures; null for `other`.'),
    first_seen: time
      .nullable()
      .describe('Time of the first failure of the period, UTC; null for `other`.'),
    last_seen: time.nullable().describe('Time of the last failure, UTC; null for `other`.'),
    is_new: z
      .boolean()
      .nullable()
      .describe(
        'Whether the store has no earlier failure with this cause, in the project of the query or else in any configured one; null for `other`.',
      ),
    transition_id: transitionId
      .nullable()
      .describe('The last failure, as an example; null for `other`.'),
    last_error_msg: z
      .string()
      .nullable()
      .describe(
        'The `error_msg` of the last failure, cut to 500 characters; null without one, and for `other`.',
      ),
  })
  .describe('Failures with the same cause.');

export type PollFields = z.output<typeof pollSchema>;
export const pollSchema = z
  .object({
    time,
    project,
    ok: z.boolean(),
    reason: reason.describe('Why the poll failed.'),
    prompts: count
      .nullable()
      .describe('Number of prompts in the listing; null if the poll failed.'),
    transitions: count,
    changed: z.boolean().describe('Whether anything besides the outcome of the poll was stored.'),
    duration_ms: count,
  })
  .describe('A finished poll.');

export type ResetFields = z.output<typeof resetSchema>;
export const resetSchema = z
  .object({ reason: z.enum(['retention', 'unknown_id']) })
  .describe(
    'Events after the requested id are not available: retention has deleted some of them, or the store never issued that id. Load the current state from the other paths again.',
  );

export const errorSchema = z.object({
  error: z.string().describe('Human-readable message; do not parse it.'),
});
