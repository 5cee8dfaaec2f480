/** What evalwatch watches: the prompts of a project and, when asked to, its datasets. */
export const KINDS = ['prompt', 'dataset'] as const;
export type Kind = (typeof KINDS)[number];

/** The statuses of a prompt in the order in which every list and metric shows them (metrics.md). */
export const PROMPT_STATUSES = ['PENDING', 'RUNNING', 'COMPLETED', 'FAILED', 'UNKNOWN'] as const;

/** A dataset may also have no status at all: `NONE` (contract 4, Transitions). */
export const DATASET_STATUSES = [...PROMPT_STATUSES, 'NONE'] as const;

export type Status = (typeof DATASET_STATUSES)[number];

/** Where a transition starts: a status, or `NEW` for a record first seen after the baseline. */
export type Origin = Status | 'NEW';

/** The statuses in which a record waits, and in which it can be stuck. */
export const WAITING_STATUSES = ['PENDING', 'RUNNING'] as const;
export type WaitingStatus = (typeof WAITING_STATUSES)[number];

export function statusesOf(kind: Kind): readonly Status[] {
  return kind === 'prompt' ? PROMPT_STATUSES : DATASET_STATUSES;
}

export function isWaiting(status: Origin): status is WaitingStatus {
  return status === 'PENDING' || status === 'RUNNING';
}

/** One of the four statuses that the service documents; any other text is kept as `UNKNOWN` (contract 4, Reading items). */
export function statusOf(text: string): Exclude<Status, 'NONE'> {
  return text === 'PENDING' || text === 'RUNNING' || text === 'COMPLETED' || text === 'FAILED'
    ? text
    : 'UNKNOWN';
}

/** Every pair that a transition of this kind can be, `NEW` included: 25 for prompts, 36 for datasets (metrics.md). */
export function transitionPairs(kind: Kind): readonly (readonly [from: Origin, to: Status])[] {
  const statuses = statusesOf(kind);
  return ['NEW' as const, ...statuses].flatMap((from) =>
    statuses.filter((to) => to !== from).map((to) => [from, to] as const),
  );
}
