/** Kinds of records that evalwatch watches: the prompts of a project and, if configured, its datasets. */
export const KINDS = ['prompt', 'dataset'] as const;
export type Kind = (typeof KINDS)[number];

/** The statuses of a prompt in the order in which every list and metric shows them (docs/metrics.md#values-of-labels). */
export const PROMPT_STATUSES = ['PENDING', 'RUNNING', 'COMPLETED', 'FAILED', 'UNKNOWN'] as const;
export type PromptStatus = (typeof PROMPT_STATUSES)[number];

/** A dataset without a status has the status `NONE` (docs/specification.md#datasets). */
export const DATASET_STATUSES = [...PROMPT_STATUSES, 'NONE'] as const;

export type Status = (typeof DATASET_STATUSES)[number];

/** Where a transition starts: a status, or `NEW` for a record first seen after the baseline. */
export type Origin = Status | 'NEW';

/** Statuses in which a record still has to finish and can be stuck. */
export const UNFINISHED_STATUSES = ['PENDING', 'RUNNING'] as const;
export type UnfinishedStatus = (typeof UNFINISHED_STATUSES)[number];

export function statusesOf(kind: Kind): readonly Status[] {
  return kind === 'prompt' ? PROMPT_STATUSES : DATASET_STATUSES;
}

export function isUnfinished(status: Origin): status is UnfinishedStatus {
  return status === 'PENDING' || status === 'RUNNING';
}

/** Returns a documented status; `UNKNOWN` for any other text (docs/specification.md#reading-items). */
export function statusOf(text: string): PromptStatus {
  return PROMPT_STATUSES.find((status) => status === text) ?? 'UNKNOWN';
}

/** Every pair of statuses that a transition of this kind can have, `NEW` included. */
export function transitionPairs(kind: Kind): readonly (readonly [from: Origin, to: Status])[] {
  const statuses = statusesOf(kind);
  return ['NEW' as const, ...statuses].flatMap((from) =>
    statuses.filter((to) => to !== from).map((to) => [from, to] as const),
  );
}
