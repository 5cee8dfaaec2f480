import type { AddedDurations, DurationCount } from '../../domain/limits.ts';
import type { ErrorTotal, ErrorInfo, Settled, Settlement, Tries } from '../../domain/failure.ts';
import type { Experiment, ExperimentState, PromptCounts } from '../../domain/experiment.ts';
import type { Receiver } from '../../domain/receiver.ts';
import type { KnownListing, Labels } from '../../domain/record.ts';
import type { Kind, Origin, PromptStatus, Status, UnfinishedStatus } from '../../domain/status.ts';
import type { Summary } from '../../domain/summary.ts';
import type { Changes, Transition } from '../../domain/transition.ts';
import type { FailedRequest, PollFailureReason } from '../errors.ts';

export interface KnownProject {
  /** Another one after every commit of a listing of this project, and each time that another process may have made one. */
  readonly token: string;
  /** One listing for each requested kind. */
  readonly listings: ReadonlyMap<Kind, KnownListing>;
}

/** Poll health of a project. Times are epoch ms. */
export interface PollHealth {
  /** Whether the last finished poll succeeded and was committed. */
  readonly up: boolean;
  readonly consecutiveFailures: number;
  /** Why the last finished poll failed; undefined if it succeeded. */
  readonly reason: PollFailureReason | undefined;
  /** What failed in the last finished poll. Kept in the memory of the process that polled, not in the store. */
  readonly failure?: FailedRequest | undefined;
  readonly lastPollAt: number | undefined;
  readonly lastSuccessAt: number | undefined;
  /** The first successful poll after which no poll has been missing; undefined in a store of an earlier version. */
  readonly steadySince?: number | undefined;
}

/** The outcome of one poll, committed in one transaction (docs/specification.md#commits). */
export interface PollCommit {
  readonly project: string;
  /** Time of the poll's transitions, epoch ms. */
  readonly at: number;
  readonly health: PollHealth;
  /** `token` of the `KnownProject` that `listings` was computed from; without listings any text. */
  readonly token: string;
  /** Changes by kind; empty for a failed or an unchanged poll. */
  readonly listings: ReadonlyMap<Kind, Changes>;
  /** Durations that end with the transitions of prompts, to be added to the stored ones; absent without any. */
  readonly durations?: readonly AddedDurations[];
}

export interface CommittedTransition extends Transition {
  readonly transitionId: number;
  readonly kind: Kind;
}

/** What a commit stored, with the numbers that it gave. */
export interface Committed {
  readonly transitions: readonly CommittedTransition[];
  readonly finishes: readonly FinishRow[];
}

/** An experiment that finished, as it was then. Times are those of polls, epoch ms. */
export interface FinishRow {
  /** Grows with every finish, and is never reused. */
  readonly finishId: number;
  /** The poll that confirmed the end. */
  readonly at: number;
  readonly project: string;
  readonly experiment: string;
  readonly counts: PromptCounts;
  /** The first move since it was reopened, and the poll that first saw it without unfinished prompts. */
  readonly startedAt: number;
  readonly endedAt: number;
}

/** Identity of a failure. After a failover that lost it, another one can have its `transitionId`. */
export interface FailureKey {
  readonly transitionId: number;
  /** Names the commit that found it, where a `transitionId` can be given twice. */
  readonly token: string | undefined;
}

export interface PendingFailure extends FailureKey {
  readonly project: string;
  readonly promptId: string;
  readonly promptName: string | undefined;
  /** When the project was removed from the configuration, epoch ms; undefined if it is configured. */
  readonly removedAt: number | undefined;
  readonly tries: Tries;
}

export interface PendingFailureQuery {
  /** Restricts the query to failures due at this time, or last tried after it (the clock was set back). Epoch ms. */
  readonly dueAt?: number;
  readonly projects?: readonly string[];
  /** Maximum for each project, oldest first: one project's backlog never hides another's. */
  readonly limitPerProject: number;
}

/** Figures of one kind of record of a project, for metrics and the status page. */
export interface ListingSnapshot {
  /** Number of records that are not gone, for every status of the kind. */
  readonly counts: ReadonlyMap<Status, number>;
  /** Number of records in `counts` that the last complete listing lacked. */
  readonly missing: number;
  readonly goneTotal: number;
  /** Number of committed transitions by pair of statuses; pairs that never occurred are absent. */
  readonly transitions: readonly (readonly [from: Origin, to: Status, count: number])[];
  /** Epoch ms of the newest transition to FAILED. */
  readonly lastFailureAt: number | undefined;
  /** For each of PENDING and RUNNING, when its oldest record was first seen in that status, epoch ms. */
  readonly oldest: ReadonlyMap<UnfinishedStatus, number>;
  /** Whether none is PENDING or RUNNING, and no experiment waits for the next listing to finish; false before the first listing. */
  readonly isIdle: boolean;
  /** Settled failures of prompts by error_id, usually at most 22 entries; empty for datasets. */
  readonly errors: readonly ErrorTotal[];
}

export interface ProjectSnapshot {
  readonly project: string;
  /** When the project was first configured, epoch ms. */
  readonly configuredAt: number;
  readonly health: PollHealth;
  readonly listings: ReadonlyMap<Kind, ListingSnapshot>;
}

/** A project in the memory of the process that polls it. */
export interface ProjectFigures {
  readonly snapshot: ProjectSnapshot;
  /** What its listings are in `snapshot`. The next commit changes them. */
  readonly summaries: Readonly<Record<Kind, Summary>>;
}

export interface StoreSnapshot {
  /** The configured projects. */
  readonly projects: readonly ProjectSnapshot[];
  readonly backlog: { readonly count: number; readonly oldestAt: number | undefined };
}

/** The configured projects that one of several workers owns, for its scrapes. */
export interface OwnedSnapshot extends StoreSnapshot {
  /** Number of configured projects of all workers. */
  readonly configured: number;
}

/**
 * Filters and order of rows, newest first by default; without filters all rows. A label restricts it to prompts that have it now,
 * '' to those without one.
 */
export interface RowQuery extends Labels {
  readonly project?: string | undefined;
  readonly status?: Status | undefined;
  /** Epoch ms. */
  readonly since?: number | undefined;
  /** For transitions and failures: only those before this time, epoch ms. */
  readonly until?: number | undefined;
  readonly promptId?: string | undefined;
  readonly limit?: number | undefined;
  /** For failures: only those with this cause, by its id or by that of version 0.2.0. */
  readonly cause?: string | undefined;
  /** For transitions and failures: only those after this transition in their order. */
  readonly afterTransition?: number | undefined;
  /** For statuses: only those after this position in the order newest first. */
  readonly afterPrompt?: PromptPosition | undefined;
  /** For statuses and transitions: `oldest` puts the longest unchanged prompts, or the first transitions, first. */
  readonly order?: 'newest' | 'oldest' | undefined;
}

/** A row's place in the order of statuses. */
interface PromptPosition {
  /** Epoch ms. */
  readonly since: number;
  readonly project: string;
  readonly promptId: string;
}

/** Query for experiments that have prompts. */
export interface ExperimentQuery {
  readonly project?: string | undefined;
  readonly experiment?: string | undefined;
  /** Only those that moved at this time or later, epoch ms. */
  readonly since?: number | undefined;
  readonly limit?: number | undefined;
  /** Only those after this one in the order: the last move first, those without a move last. */
  readonly after?: Pick<ExperimentRow, 'movedAt' | 'key'> | undefined;
}

export interface ExperimentRow extends Experiment {
  /** Distinguishes it in the store. */
  readonly key: number;
  readonly project: string;
  readonly experiment: string;
  readonly state: ExperimentState;
}

export interface StatusRow extends Labels {
  readonly project: string;
  readonly promptId: string;
  readonly promptName: string | undefined;
  readonly status: PromptStatus;
  readonly statusRaw: string | undefined;
  readonly since: number;
  readonly missing: number;
}

export interface TransitionRow {
  readonly transitionId: number;
  readonly at: number;
  readonly project: string;
  readonly kind: Kind;
  readonly id: string;
  /** That of the record now. */
  readonly experiment: string | undefined;
  readonly from: Origin;
  readonly to: Status;
}

export interface FailureRow {
  readonly transitionId: number;
  readonly at: number;
  readonly project: string;
  readonly promptId: string;
  /** Name at the time of the transition. */
  readonly promptName: string | undefined;
  /** That of the prompt now. */
  readonly experiment: string | undefined;
  /** Undefined while the failure is pending. */
  readonly settlement: Settlement | undefined;
  /** Id of its cause; undefined while the failure is pending, and if a worker of an earlier version settled it. */
  readonly cause: string | undefined;
}

/** Maximum number of failures that are grouped by cause for an answer: the thread that groups them also commits polls. */
export const MAX_GROUPED_FAILURES = 50_000;

/** What a query counts. */
interface Scope {
  /** Restricts it to one project; absent for all configured projects. */
  readonly project?: string | undefined;
  /** Counts what happened at this time and later, epoch ms. */
  readonly since: number;
}

/** Query for the causes of settled failures, most frequent first. Labels restrict it as they do {@link RowQuery}. */
export interface CauseQuery extends Scope, Labels {
  /** Counts only so many failures, the newest ones; by default {@link MAX_GROUPED_FAILURES}. */
  readonly maxFailures?: number | undefined;
  /** Maximum number of causes. */
  readonly limit: number;
}

/** Failures with the same cause. */
export interface CauseRow {
  readonly cause: string;
  readonly count: number;
  /** Number of projects that have such failures. */
  readonly projects: number;
  /** Time of the first and of the last of them, epoch ms. */
  readonly firstAt: number;
  readonly lastAt: number;
  /** Whether no older failure of the same projects that is still stored has the cause. */
  readonly isNew: boolean;
  /** The last of them. */
  readonly transitionId: number;
  /** Its error_info. */
  readonly errorInfo: ErrorInfo | undefined;
}

export interface CauseList {
  readonly causes: readonly CauseRow[];
  /** Causes that the limit has left out, and their failures. */
  readonly others: { readonly causes: number; readonly count: number };
}

/**
 * Position in the order of events: after this transition, this settlement and this finish. The numbers only grow and are never
 * reused, even after retention deletes rows; 0 is before the first.
 */
export interface EventPosition {
  readonly transition: number;
  readonly settlement: number;
  readonly finish: number;
}

interface SettledFailureRow extends FailureRow {
  readonly settlementId: number;
}

/** Stored events after a position, oldest first. */
export interface RecordedEvents {
  readonly transitions: readonly TransitionRow[];
  /** Settled failures in the order of their settlement. */
  readonly settled: readonly SettledFailureRow[];
  readonly finishes: readonly FinishRow[];
  /** The highest numbers used so far. */
  readonly end: EventPosition;
}

/** Query for the number of moves, which are transitions of prompts, in consecutive time spans that begin at `since`. */
export interface MoveQuery extends Scope {
  readonly spanMs: number;
  /** Maximum number of transitions that are read, newest first. */
  readonly limit: number;
}

export interface MoveHistory {
  /** All moves after this time are counted, epoch ms. Later than the query's `since` if the limit was reached. */
  readonly since: number;
  readonly moves: readonly MoveCount[];
}

/** Number of moves of a project's prompts from one status to another in one span. */
export interface MoveCount {
  readonly project: string;
  /** Index of the span, from 0. */
  readonly span: number;
  readonly from: Origin;
  readonly to: Status;
  readonly count: number;
  /** Number of these moves whose prompts are not gone. */
  readonly listed: number;
}

/** Query for the number of moves to FAILED. */
export interface FailureCountQuery extends Scope {
  /** Counting stops at this number, which bounds the cost. */
  readonly limitPerProject: number;
}

export interface FailureCount {
  readonly project: string;
  /** At least 1; if it equals the query's limit, there may be more. */
  readonly count: number;
}

/** A status of the prompts of a project. */
export interface ProjectState {
  readonly project: string;
  readonly status: UnfinishedStatus;
}

/** How long the prompts of a project were in a status, by day and bucket. */
export interface StateDurations extends ProjectState {
  readonly counts: readonly DurationCount[];
}

/** Read access, also while a daemon writes. Every method rejects with a {@link StoreError} if the store fails. */
export interface StoreReader {
  /** Ids of all stored projects, including removed ones. */
  projects(): Promise<readonly string[]>;
  /** `project` restricts it to one project. */
  snapshot(project?: string): Promise<StoreSnapshot>;
  /** Prompts that are not gone; `since` filters by their last change. */
  statuses(query: RowQuery): Promise<readonly StatusRow[]>;
  /** Transitions of prompts and datasets. */
  transitions(query: RowQuery): Promise<readonly TransitionRow[]>;
  failures(query: RowQuery): Promise<readonly FailureRow[]>;
  /** Experiments with prompts, the last move first. */
  experiments(query: ExperimentQuery): Promise<readonly ExperimentRow[]>;
  /** Counts the prompts of a project that have no experiment and are not gone. */
  withoutExperiment(project: string): Promise<PromptCounts>;
  causes(query: CauseQuery): Promise<CauseList>;
  /** At most `limit` transitions, settled failures and finishes each after this position. */
  events(after: EventPosition, limit: number): Promise<RecordedEvents>;
  moves(query: MoveQuery): Promise<MoveHistory>;
  /** Projects without failures are absent. */
  failureCounts(query: FailureCountQuery): Promise<readonly FailureCount[]>;
  /** Durations in these statuses of this day and later, days since 1970. One entry for each state, in the same order. */
  durations(states: readonly ProjectState[], firstDay: number): Promise<readonly StateDurations[]>;
  close(): Promise<void>;
}

/** What retention deletes. */
export interface PruneLimits {
  /** Transitions, settled failures, finishes, empty experiments and removed projects older than this are deleted, epoch ms. */
  readonly before: number;
  /** Durations of days before this one are deleted, days since 1970. */
  readonly firstDay: number;
  /** The configured receivers of messages, with their kinds. Others that were not seen here for a day are deleted. */
  readonly receivers?:
    | {
        /** Now, epoch ms. */
        readonly at: number;
        readonly configured: readonly Pick<Receiver, 'name' | 'on'>[];
      }
    | undefined;
}

/**
 * State of one daemon, or of all workers. A commit of a poll that rejects with a {@link StoreError} has changed nothing; other
 * methods may have, where an answer was lost or after a part.
 */
export interface Store extends StoreReader {
  /**
   * Sets the configured projects: adds new ones and marks absent ones removed, keeping their failures and statuses. The
   * message of the error says so if the change may have been made.
   */
  configureProjects(ids: readonly string[], at: number): Promise<void>;
  loadHealth(project: string): Promise<PollHealth>;
  /** Loads the records of these kinds. `only` restricts a kind to the given ids. */
  loadKnown(
    project: string,
    kinds: readonly Kind[],
    only?: ReadonlyMap<Kind, readonly string[]>,
  ): Promise<KnownProject>;
  /**
   * Commits a poll in one transaction: health, statuses, transitions, totals, experiments, and a pending failure for each
   * prompt that moved to FAILED. Resolves to undefined, and writes nothing, if the project has another token by now: another
   * listing was committed, or another worker owns it.
   */
  commitPoll(commit: PollCommit): Promise<Committed | undefined>;
  /** Whether the next complete listing of prompts can finish an experiment: then it is committed even without changes. */
  isFinishing(project: string): boolean;
  /** For each of these projects, so many experiments that run, or have moved and not finished: the newest names first. */
  unfinishedExperiments(
    projects: readonly string[],
    limit: number,
  ): Promise<readonly ExperimentRow[]>;
  /** Whether the prompts of the project are idle, as of the last commit of their listing. */
  isIdle(project: string): boolean;
  /** Stores the health of a poll that could not be committed, as soon as that succeeds, unless newer health comes first. */
  keepHealth(project: string, health: PollHealth): void;
  /** Failures that are not settled yet, oldest first. A logged failure is pending until it is settled. */
  pendingFailures(query: PendingFailureQuery): Promise<readonly PendingFailure[]>;
  /** Records the outcome of a failure; called after its line was logged. Changes nothing if it is not pending. */
  settleFailure(failure: FailureKey, settled: Settled, at: number): Promise<void>;
  /** Records the tries of a failure. Changes nothing if it is not pending. */
  postponeFailure(failure: FailureKey, tries: Tries): Promise<void>;
  /** Deletes what is older than its retention (docs/specification.md#retention). */
  prune(limits: PruneLimits): Promise<void>;
  /** Size in bytes; `wal` is undefined if the engine has no write-ahead log for this store alone. */
  size(): Promise<{ readonly database: number; readonly wal: number | undefined }>;
}
