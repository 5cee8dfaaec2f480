import type { KnownRecord } from './record.ts';
import {
  isUnfinished,
  PROMPT_STATUSES,
  type Origin,
  type PromptStatus,
  type Status,
} from './status.ts';

/** Number of prompts in every status. */
export type PromptCounts = Readonly<Record<PromptStatus, number>>;

export const NO_PROMPTS: PromptCounts = {
  PENDING: 0,
  RUNNING: 0,
  COMPLETED: 0,
  FAILED: 0,
  UNKNOWN: 0,
};

/**
 * An experiment of a project, as the last commit left it (docs/specification.md#experiments). Times are those of polls, epoch
 * ms.
 */
export interface Experiment {
  /** Those of its prompts that are not gone. */
  readonly counts: PromptCounts;
  /** The first move since it was reopened, or else of all; undefined without any. */
  readonly startedAt?: number | undefined;
  /** The last move of all. */
  readonly movedAt?: number | undefined;
  /** When it was first seen without unfinished prompts; undefined while it has some, or no prompts at all. */
  readonly endedAt?: number | undefined;
  /** The poll that confirmed it, and so finished the experiment; undefined before that, and once it is reopened. */
  readonly finishedAt?: number | undefined;
}

export const EXPERIMENT_STATES = ['running', 'ended', 'finished'] as const;
export type ExperimentState = (typeof EXPERIMENT_STATES)[number];

/** Returns `running` while prompts are unfinished, `finished` once that was confirmed, and `ended` otherwise. */
export function stateOf({ counts, finishedAt }: Experiment): ExperimentState {
  if (hasPrompts(counts, isUnfinished)) return 'running';
  return finishedAt === undefined ? 'ended' : 'finished';
}

/** What a listing changes of an experiment. */
export interface ExperimentChange {
  /** By how much each count grows. */
  readonly counts: ReadonlyMap<Status, number>;
  /** Whether a prompt of it began, went on or ended. */
  readonly moved: boolean;
}

/** What the changes of a listing of prompts change of their experiments, by name. */
export class ExperimentChanges {
  readonly #changes = new Map<string, { readonly counts: Map<Status, number>; moved: boolean }>();

  /** Adds a prompt that replaces a stored one; undefined if it is new. */
  addRecord(before: KnownRecord | undefined, record: KnownRecord): void {
    if (
      before?.experiment === record.experiment &&
      before?.status === record.status &&
      before.gone === record.gone
    ) {
      return;
    }
    if (before?.gone === false) this.#count(before, -1);
    if (!record.gone) this.#count(record, 1);
  }

  /** Adds a transition of a prompt in this experiment. */
  addTransition(experiment: string | undefined, from: Origin, to: Status): void {
    // What ended and then gets a status that is not known, such as ARCHIVED, has not run again.
    const isMove = to !== 'UNKNOWN' || from === 'NEW' || isUnfinished(from);
    if (experiment !== undefined && isMove) this.#change(experiment).moved = true;
  }

  entries(): IterableIterator<readonly [name: string, change: ExperimentChange]> {
    return this.#changes.entries();
  }

  #count({ experiment, status }: KnownRecord, by: 1 | -1): void {
    if (experiment === undefined) return;
    const { counts } = this.#change(experiment);
    counts.set(status, (counts.get(status) ?? 0) + by);
  }

  #change(experiment: string) {
    let change = this.#changes.get(experiment);
    if (change === undefined) {
      this.#changes.set(experiment, (change = { counts: new Map(), moved: false }));
    }
    return change;
  }
}

/** Whether the next complete listing finishes the experiment, unless it changes that: also a listing without changes. */
export function isFinishing({ startedAt, endedAt, finishedAt }: Experiment): boolean {
  return startedAt !== undefined && endedAt !== undefined && finishedAt === undefined;
}

/**
 * Returns the experiment after a listing. It finished with that listing if only the returned one has a `finishedAt`.
 * @param change undefined if the listing changes nothing of it
 * @param poll its time, epoch ms, and whether its listing was complete
 */
export function nextExperiment(
  before: Experiment | undefined,
  change: ExperimentChange | undefined,
  poll: { readonly at: number; readonly complete: boolean },
): Experiment {
  const { at, complete } = poll;
  const { moved = false } = change ?? {};
  const counts = { ...(before?.counts ?? NO_PROMPTS) };
  for (const status of PROMPT_STATUSES) counts[status] += change?.counts.get(status) ?? 0;
  const [isRunning, isEmpty] = [hasPrompts(counts, isUnfinished), !hasPrompts(counts)];
  const wasFinished = before?.finishedAt !== undefined;
  if (wasFinished && !moved && !isRunning) return { ...before, counts };

  const movedAt = moved ? at : before?.movedAt;
  const startedAt = (wasFinished ? undefined : before?.startedAt) ?? (moved ? at : undefined);
  if (isRunning || isEmpty) return { counts, startedAt, movedAt };
  const endedAt = moved ? at : (before?.endedAt ?? at);
  const next = { counts, startedAt, movedAt, endedAt };
  const hadEnded = before?.endedAt !== undefined;
  return complete && hadEnded && !moved && isFinishing(next) ? { ...next, finishedAt: at } : next;
}

/** Whether there are prompts, in one of these statuses if they are given. */
function hasPrompts(
  counts: PromptCounts,
  isOne: (status: PromptStatus) => boolean = () => true,
): boolean {
  return PROMPT_STATUSES.some((status) => isOne(status) && counts[status] > 0);
}

/** Returns how long an experiment took, ms; 0 if the clock was set back meanwhile. */
export function tookMs({ startedAt, endedAt }: { startedAt: number; endedAt: number }): number {
  return Math.max(0, endedAt - startedAt);
}
