import { z } from 'zod';
import { NO_ERROR_INFO_REASONS } from '../domain/failure.ts';
import { DATASET_STATUSES, UNFINISHED_STATUSES } from '../domain/status.ts';
import { POLL_FAILURE_REASONS } from '../monitor/errors.ts';

// Declares a message once: the store keeps it as it is sent to webhooks, and docs/webhook.schema.json is generated from this.

/** Maximum number of prompts, experiments, causes and projects that a message names. */
export const MAX_PROMPTS = 10;
export const MAX_EXPERIMENTS = 10;
export const MAX_CAUSES = 10;
export const MAX_PROJECTS = 20;

const time = z.iso.datetime({ precision: 3 }).describe('UTC.');
const text = z.string().nullable();
const count = z.int().min(1);
const total = z.int().min(0);

const project = z.object({
  project: z.string().describe('The id of the project.'),
  team: text,
  url: text.describe('Address of its page of evalwatch; null without `web.external_url`.'),
});
const prompt = z.object({
  prompt_id: z.string(),
  prompt_name: text,
  url: text.describe(
    'Address of the prompt at the service, else of its page of evalwatch; null without `service.prompt_url` and `web.external_url`.',
  ),
});
const failedPrompt = prompt.extend({
  time: time.describe('When evalwatch saw that it had failed, UTC.'),
  error_info: z
    .object({ error_id: text, error_msg: text.describe('At most 300 characters.') })
    .nullable(),
  reason: z
    .enum(NO_ERROR_INFO_REASONS)
    .nullable()
    .describe('Why there is no `error_info`; null also while that is not known.'),
  cause: text.describe('Id of the cause; null while it is not known.'),
});
const stuckPrompt = prompt.extend({
  status: z.enum(UNFINISHED_STATUSES),
  since: time,
  limit_seconds: z.number(),
  until: time.nullable().describe('When it left the status, UTC; null while it is stuck.'),
  to: z
    .enum(DATASET_STATUSES)
    .nullable()
    .describe('Its next status; null while it is stuck, and if it is gone.'),
});
const downProject = project.extend({
  since: time.describe('The last successful poll, or when the project was first configured, UTC.'),
  until: time.nullable().describe('The next successful poll, UTC; null while there is none.'),
  reason: z.enum(POLL_FAILURE_REASONS).nullable(),
  status_code: z.int().nullable(),
  detail: text.describe('What the service said in its answer, at most 300 characters.'),
});
const causes = z
  .array(z.object({ cause: z.string(), error_id: text, shape: z.string(), count }))
  .max(MAX_CAUSES)
  .describe('The most frequent causes of all prompts, the most frequent first.');

const experiment = z.object({
  experiment: z.string().describe('Its name.'),
  url: text.describe(
    'Address of its page of evalwatch; null without `web.external_url`, and for the names `.` and `..`.',
  ),
  first_move: time.describe('The first move since it began, or ran again, UTC.'),
  ended: time.describe('The first listing without a prompt that is PENDING or RUNNING, UTC.'),
  duration_seconds: z.number().describe('From `first_move` to `ended`, 0 if one poll saw both.'),
  prompts: z.object({ COMPLETED: total, FAILED: total, UNKNOWN: total }),
  causes: causes.describe(
    'The most frequent causes of prompts that failed since `first_move`, the most frequent first.',
  ),
});

const after_pause = z
  .boolean()
  .describe(
    'Whether the first poll after a pause saw one of those that the list names move, or end: it did so at any time since the poll before.',
  );
const prompts = <Each extends z.ZodType>(each: Each) =>
  project.extend({
    count: count.describe('Number of prompts, also of those that the list leaves out.'),
    prompts: z.array(each).max(MAX_PROMPTS).describe('The oldest first.'),
  });
const experiments = project.extend({
  count: count.describe('Number of experiments, also of those that the list leaves out.'),
  after_pause,
  experiments: z.array(experiment).min(1).max(MAX_EXPERIMENTS).describe('The first one first.'),
});
const projects = z.object({
  url: text.describe('Address of the overview of evalwatch; null without `web.external_url`.'),
  count: count.describe('Number of projects, also of those that the list leaves out.'),
  projects: z.array(downProject).min(1).max(MAX_PROJECTS),
});

const event = <Type extends string, Data extends z.ZodType>(type: Type, data: Data) =>
  z.object({
    schema: z.literal(1).describe('Changes if a field changes, not if one is added.'),
    id: z.uuid().describe('The same each time that the message is sent.'),
    type: z.literal(type),
    timestamp: time.describe('When the message was written, UTC.'),
    data,
  });
const messageSchema = z.discriminatedUnion('type', [
  event('prompts.failed', prompts(failedPrompt).extend({ after_pause, causes })),
  event('prompts.completed', prompts(prompt).extend({ after_pause })),
  event('prompts.stuck', prompts(stuckPrompt)),
  event('prompts.recovered', prompts(stuckPrompt)),
  event('experiments.finished', experiments),
  event('projects.down', projects),
  event('projects.up', projects),
  event('test', z.object({ receiver: z.string() })),
]);

/** What one receiver is told at once. Texts are as the service and the configuration have them. */
export type Message = z.output<typeof messageSchema>;
export type MessageOf<Type> = Extract<Message, { readonly type: Type }>;
export type PromptRef = z.output<typeof prompt>;
export type FailedPrompt = z.output<typeof failedPrompt>;
export type StuckPrompt = z.output<typeof stuckPrompt>;
export type FinishedExperiment = z.output<typeof experiment>;
export type DownProject = z.output<typeof downProject>;

/** Returns the JSON Schema (draft 2020-12) of messages. It allows fields that later versions may add. */
export function messageJsonSchema(): object {
  const schema = z.toJSONSchema(messageSchema, { target: 'draft-2020-12', io: 'input' });
  return { ...schema, title: 'Message of evalwatch to a webhook' };
}
