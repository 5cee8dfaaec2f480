import type { ErrorInfo, NoErrorInfoReason } from '../domain/failure.ts';
import type { NotifyKind, Receiver } from '../domain/receiver.ts';
import type { PromptStatus, UnfinishedStatus } from '../domain/status.ts';
import type { ProjectSnapshot } from '../monitor/ports/store.ts';

// What notifications read and write in the store (docs/specification.md#stored-messages). Times are epoch ms.

/** A receiver, without its address. */
export type Subscriber = Pick<Receiver, 'name' | 'on' | 'teams' | 'projects'>;

/** Whose messages of which kind. */
export interface Subscription {
  readonly receiver: string;
  readonly kind: NotifyKind;
}

/** A composed message that its receiver has not answered yet. */
export interface StoredMessage {
  readonly id: string;
  /** Whose owner sends it. */
  readonly project: string;
  readonly createdAt: number;
  /** In JSON. */
  readonly content: string;
}

/** Something that a receiver has been told, or forgets. */
export interface Told {
  readonly project: string;
  /** Of a stuck prompt; empty otherwise. */
  readonly promptId: string;
  /** Of a stuck prompt. */
  readonly status?: UnfinishedStatus | undefined;
  /**
   * Of `failed` and `completed`: the last transition that has been told. Of `stuck` and `down`: when that began. Undefined when it
   * is over.
   */
  readonly mark: number | undefined;
}

interface Composed extends Subscription {
  /** As it was read before anything that the message tells. */
  readonly token: string;
  readonly told: readonly Told[];
  /** Undefined to note what has been told without a message. */
  readonly message: StoredMessage | undefined;
}

/** A subscription to moves of prompts to one status, and the time at which they are looked at. */
export interface MoveQuery extends Subscription {
  readonly kind: 'failed' | 'completed';
  readonly project: string;
  /** Moves before this transition are known to be told. */
  readonly from: number;
  /** Failures after this time wait for their outcome. One after `now` does not: the clock was set back. */
  readonly waitsSince: number;
  readonly now: number;
  /** Moves before this time are no longer told. */
  readonly since: number;
}

/** What is due of a subscription to moves. */
export interface DueMoves {
  readonly token: string;
  /** Number of moves to tell, and the first of them; then those that are too old to be told. */
  readonly count: number;
  readonly first: number | undefined;
  readonly old: number;
  /** The last move to tell, or too old; undefined without any. */
  readonly last: number | undefined;
  /** When the first failure happened whose outcome may still come; moves from it on are not due yet. */
  readonly waitsSince: number | undefined;
}

/** Moves of a project from one transition to another. */
export interface MoveRange {
  readonly kind: MoveQuery['kind'];
  readonly project: string;
  readonly first: number;
  readonly last: number;
}

export interface MoveRow {
  readonly promptId: string;
  readonly promptName: string | undefined;
  readonly at: number;
  readonly errorInfo: ErrorInfo | undefined;
  readonly reason: NoErrorInfoReason | undefined;
  readonly cause: string | undefined;
}

/** Failures with the same cause. */
export interface CauseRow {
  readonly cause: string;
  readonly count: number;
  /** That of the last of them. */
  readonly errorInfo: ErrorInfo | undefined;
}

/** A prompt that is in a status, or was. */
export interface WaitingRow {
  readonly promptId: string;
  readonly promptName: string | undefined;
  readonly status: UnfinishedStatus;
  readonly since: number;
}

interface StuckRows {
  readonly token: string;
  /** Prompts that have been in the status since a time before `before` and have not been told, the longest first. */
  readonly rows: readonly WaitingRow[];
  /** Since when the next one is in the status; undefined if there is none. */
  readonly nextSince: number | undefined;
}

interface RecoveredRow extends WaitingRow {
  /** What came after it; undefined if the prompt is gone. */
  readonly next: { readonly status: PromptStatus; readonly since: number } | undefined;
}

interface RecoveredRows {
  readonly token: string;
  /** Prompts that were told to be stuck and are no longer, the first told first. */
  readonly rows: readonly RecoveredRow[];
  /** Whether others were told too. */
  readonly areOthersTold: boolean;
}

/** Maximum number of prompts that one message tells to be stuck, or no longer; further ones are in the next. */
export const MAX_TOLD = 2000;

/** The store of notifications. Every method but `snapshot` rejects with a {@link StoreError} if the store fails. */
export interface NotifyStore {
  /** Returns what is in memory of a project that this process polls; undefined for others. */
  snapshot(project: string): ProjectSnapshot | undefined;
  /** Notes a subscriber: what happened before this is not told. Changes nothing for kinds that are known. */
  subscribe(subscriber: Pick<Receiver, 'name' | 'on'>, at: number): Promise<void>;
  /** The stored messages of a receiver, oldest first. */
  messages(receiver: string): Promise<readonly StoredMessage[]>;
  /** Deletes a message. */
  forget(receiver: string, messageId: string): Promise<void>;
  /**
   * Stores a message and what it tells, in one transaction. Returns false, and changes nothing, if anything of this kind was
   * stored for the receiver since the token was read.
   */
  compose(composed: Composed): Promise<boolean>;
  /** For each of these projects with moves that have not been told since this time, the first of them. */
  firstMoves(
    of: Pick<MoveQuery, 'receiver' | 'kind' | 'since'>,
    projects: readonly string[],
  ): Promise<readonly { readonly project: string; readonly id: number; readonly at: number }[]>;
  /** Undefined if the project or the subscription is gone. */
  dueMoves(query: MoveQuery): Promise<DueMoves | undefined>;
  /** The first of these moves. */
  moves(range: MoveRange, limit: number): Promise<readonly MoveRow[]>;
  /** The most frequent causes of these failures. */
  causes(range: MoveRange, limit: number): Promise<readonly CauseRow[]>;
  /** Undefined if the subscription is gone. */
  stuck(
    receiver: string,
    project: string,
    status: UnfinishedStatus,
    before: number,
  ): Promise<StuckRows | undefined>;
  /** Undefined if the subscription is gone. */
  recovered(receiver: string, project: string): Promise<RecoveredRows | undefined>;
  /** The projects with prompts that were told to be stuck. */
  projectsWithStuck(receiver: string): Promise<readonly string[]>;
  /** The projects that were told to be down, and since when they are. Undefined if the subscription is gone. */
  down(
    receiver: string,
  ): Promise<{ readonly token: string; readonly since: ReadonlyMap<string, number> } | undefined>;
}
