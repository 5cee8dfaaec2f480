import type { Settlement, Tries } from '../../domain/failure.ts';
import type { KnownListing } from '../../domain/record.ts';
import type { Kind, Origin, PromptStatus, Status, WaitingStatus } from '../../domain/status.ts';
import type { Changes, Transition } from '../../domain/transition.ts';
import type { PollFailureReason } from '../errors.ts';

export interface KnownProject {
  /** Changes with every commit of a listing of this project. */
  readonly version: number;
  /** One for each kind that was asked for. */
  readonly listings: ReadonlyMap<Kind, KnownListing>;
}

/** How a project's polls go. Times are epoch ms. */
export interface PollHealth {
  /** The last finished poll succeeded and was committed. */
  readonly up: boolean;
  readonly consecutiveFailures: number;
  /** Why the last finished poll failed. */
  readonly reason: PollFailureReason | undefined;
  /** For the reason `auth` of a poll of this process: true if the service refused the key, false if there was none to send. */
  readonly keyWasRefused?: boolean | undefined;
  readonly lastPollAt: number | undefined;
  readonly lastSuccessAt: number | undefined;
}

/** The outcome of one poll, committed in one transaction (docs/specification.md#commits). */
export interface PollCommit {
  readonly project: string;
  /** Epoch ms: the time of its transitions. */
  readonly at: number;
  readonly health: PollHealth;
  /** `version` of the `KnownProject` that `listings` was computed from. */
  readonly version: number;
  /** What was read and differs from what is known; none for a failed or an unchanged poll. */
  readonly listings: ReadonlyMap<Kind, Changes>;
}

export interface CommittedTransition extends Transition {
  readonly transitionId: number;
  readonly kind: Kind;
}

export interface PendingFailure {
  readonly transitionId: number;
  readonly project: string;
  readonly promptId: string;
  readonly promptName: string | undefined;
  /** When its project left the configuration, epoch ms; undefined while it is in it. */
  readonly removedAt: number | undefined;
  readonly tries: Tries;
}

export interface PendingFailureQuery {
  /** Only failures that are due at this time, or whose last try lies after it (the clock was set back). */
  readonly dueAt?: number;
  readonly projects?: readonly string[];
  /** At most so many of each project, its oldest: one project's backlog never hides another's. */
  readonly limitPerProject: number;
}

/** What metrics and the status page show of one kind of record of a project. */
export interface ListingSnapshot {
  /** Records that are not gone, by status; every status of the kind. */
  readonly counts: ReadonlyMap<Status, number>;
  /** Of them, those that the last complete listing lacked. */
  readonly missing: number;
  readonly goneTotal: number;
  /** Committed transitions; pairs that never happened are absent. */
  readonly transitions: readonly (readonly [from: Origin, to: Status, count: number])[];
  /** Epoch ms of the newest transition to FAILED. */
  readonly lastFailureAt: number | undefined;
  /** Since when the longest waiting record waits, epoch ms. */
  readonly oldest: ReadonlyMap<WaitingStatus, number>;
}

export interface ProjectSnapshot {
  readonly project: string;
  /** When it was first configured, epoch ms. */
  readonly configuredAt: number;
  readonly health: PollHealth;
  readonly listings: ReadonlyMap<Kind, ListingSnapshot>;
}

export interface StoreSnapshot {
  /** The configured projects. */
  readonly projects: readonly ProjectSnapshot[];
  readonly backlog: { readonly count: number; readonly oldestAt: number | undefined };
}

/** Newest first; without a filter everything. */
export interface RowQuery {
  readonly project?: string | undefined;
  readonly status?: Status | undefined;
  /** Epoch ms. */
  readonly since?: number | undefined;
  readonly limit?: number | undefined;
  /** Of transitions and failures: only those older than this one. */
  readonly afterTransition?: number | undefined;
  /** Of statuses: only those that come after this one, newest first. */
  readonly afterPrompt?: PromptPosition | undefined;
  /** Of statuses: `oldest` has those first that have stood longest. */
  readonly order?: 'newest' | 'oldest' | undefined;
}

/** A row's place in the order of statuses. */
export interface PromptPosition {
  /** Epoch ms. */
  readonly since: number;
  readonly project: string;
  readonly promptId: string;
}

export interface StatusRow {
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
  readonly from: Origin;
  readonly to: Status;
}

export interface FailureRow {
  readonly transitionId: number;
  readonly at: number;
  readonly project: string;
  readonly promptId: string;
  /** Undefined while the failure is pending. */
  readonly settlement: Settlement | undefined;
}

/**
 * A place in the order of events: after this transition and this settlement. Both numbers only grow, and none is used
 * twice, whatever retention deletes; 0 is before the first.
 */
export interface EventPosition {
  readonly transition: number;
  readonly settlement: number;
}

interface SettledFailureRow extends FailureRow {
  readonly settlementId: number;
}

/** What the store holds of the events after some position, both oldest first. */
export interface RecordedEvents {
  readonly transitions: readonly TransitionRow[];
  /** In the order in which they were settled. */
  readonly settled: readonly SettledFailureRow[];
  /** The newest numbers there ever were. */
  readonly end: EventPosition;
}

/** The moves of prompts in the spans of time that follow each other from `since`. */
export interface MoveQuery {
  /** Restricts the query to one project; absent for all configured projects. */
  readonly project?: string | undefined;
  /** Epoch ms: where the first span begins. */
  readonly since: number;
  readonly spanMs: number;
  /** At most so many transitions are read, the newest. */
  readonly limit: number;
}

export interface MoveHistory {
  /** Epoch ms: all moves after it are counted. Later than what was asked for if the limit was reached. */
  readonly since: number;
  readonly moves: readonly MoveCount[];
}

/** How often prompts of a project went from one status to another in one span. */
export interface MoveCount {
  readonly project: string;
  /** From 0, the one that begins at the query's `since`. */
  readonly span: number;
  readonly from: Origin;
  readonly to: Status;
  readonly count: number;
  /** Of them, moves of prompts that are not gone by now. */
  readonly listed: number;
}

/** The moves of prompts to FAILED. */
export interface FailureCountQuery {
  /** Restricts the query to one project; absent for all configured projects. */
  readonly project?: string | undefined;
  /** Epoch ms: those at this time and later. */
  readonly since: number;
  /** Counting stops at this number, which bounds the cost. */
  readonly limitPerProject: number;
}

export interface FailureCount {
  readonly project: string;
  /** From 1; if it is the query's limit, there may be more. */
  readonly count: number;
}

/** Reading, possible beside the daemon that writes. Every method rejects with a {@link StoreError}. */
export interface StoreReader {
  /** Ids of every project that the store knows, removed ones included. */
  projects(): Promise<readonly string[]>;
  snapshot(): Promise<StoreSnapshot>;
  /** Prompts that are not gone; `since` filters by their last change. */
  statuses(query: RowQuery): Promise<readonly StatusRow[]>;
  /** Transitions of prompts and datasets. */
  transitions(query: RowQuery): Promise<readonly TransitionRow[]>;
  failures(query: RowQuery): Promise<readonly FailureRow[]>;
  /** At most `limit` transitions and `limit` settled failures after this position. */
  events(after: EventPosition, limit: number): Promise<RecordedEvents>;
  moves(query: MoveQuery): Promise<MoveHistory>;
  /** Projects without failures are absent. */
  failureCounts(query: FailureCountQuery): Promise<readonly FailureCount[]>;
  close(): Promise<void>;
}

/** The state of one monitor. Every method rejects with a {@link StoreError}, and has then done nothing. */
export interface Store extends StoreReader {
  /**
   * Makes these the configured projects: new ones are added, absent ones marked removed, with their polls' failures
   * and statuses kept. The error says so if the change may have been made.
   */
  configureProjects(ids: readonly string[], at: number): Promise<void>;
  loadHealth(project: string): Promise<PollHealth>;
  /** Everything that is known of these kinds; of one that is in `only`, just the records with these ids. */
  loadKnown(
    project: string,
    kinds: readonly Kind[],
    only?: ReadonlyMap<Kind, readonly string[]>,
  ): Promise<KnownProject>;
  /**
   * Commits a poll whole: health, statuses, transitions, totals, and a pending failure for each prompt that moved to
   * FAILED. Undefined if somebody else committed a listing since `version`: then nothing was written.
   */
  commitPoll(commit: PollCommit): Promise<readonly CommittedTransition[] | undefined>;
  /** Failures without their line, oldest first. */
  pendingFailures(query: PendingFailureQuery): Promise<readonly PendingFailure[]>;
  /** After the line was logged. */
  settleFailure(transitionId: number, settlement: Settlement, at: number): Promise<void>;
  postponeFailure(transitionId: number, tries: Tries): Promise<void>;
  /** Deletes transitions, settled failures and removed projects from before this time (docs/specification.md#retention). */
  prune(before: number): Promise<void>;
  /** In bytes; `wal` only of a log that is the store's own. */
  size(): Promise<{ readonly database: number; readonly wal: number | undefined }>;
}
