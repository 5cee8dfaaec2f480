import type { ErrorInfo, NoErrorInfoReason } from '../domain/failure.ts';
import type { NotifyKind, Receiver } from '../domain/receiver.ts';
import type { PromptStatus, UnfinishedStatus } from '../domain/status.ts';
import type { FinishRow, ProjectSnapshot } from '../monitor/ports/store.ts';
import type { ConfiguredProject } from '../monitor/ports/watched-project.ts';
import type { Message } from './message.ts';

// What notifications read and write in the store (docs/specification.md#stored-messages). Times are epoch ms.

/** The projects that a receiver is told of. */
export type Filter = Pick<Receiver, 'teams' | 'projects'>;

/** A receiver, without its address. */
export type Subscriber = Pick<Receiver, 'name' | 'on'> & Filter;

/** Whose messages of which kind. */
export interface Subscription {
  readonly receiver: string;
  readonly kind: NotifyKind;
}

/** A message that its receiver has not answered yet. */
export interface StoredMessage {
  readonly message: Message;
  readonly createdAt: number;
  /** Whose owner sends it. */
  readonly project: string;
}

/** Something that a receiver has been told, or forgets. */
interface Told {
  readonly project: string;
  /** The id of a stuck prompt; empty otherwise. */
  readonly promptId: string;
  /** The status in which a prompt is stuck. */
  readonly status?: UnfinishedStatus | undefined;
  /**
   * The last transition of `failed` or `completed`, or the last finish, that has been told, or when `stuck` or `down` began;
   * undefined when that is over.
   */
  readonly mark: number | undefined;
}

export interface Composed extends Subscription {
  /** As it was read before anything that the message tells. */
  readonly token: string;
  /** Not empty. The owner of the first project sends the message. */
  readonly told: readonly Told[];
  /** Undefined to note what has been told without a message. */
  readonly message: Message | undefined;
}

/** Kinds of messages that tell of moves of prompts to one status, or of finishes, each once and in the order of its number. */
export type MoveKind = 'failed' | 'completed' | 'finished';

/** A subscription to such moves. */
interface MoveSubscription extends Subscription {
  readonly kind: MoveKind;
  /** Moves before this time are no longer told. */
  readonly since: number;
}

/** Such moves of a project, and the time at which they are looked at. */
export interface MoveQuery extends MoveSubscription {
  readonly project: string;
  /** Failures and finishes after this time wait for outcomes. One after `now` does not: the clock was set back. */
  readonly waitsSince: number;
  readonly now: number;
  /** Maximum number of rows of each list. */
  readonly maxMoves: number;
  readonly maxCauses: number;
}

/** What is due of a subscription to moves. */
export interface DueMoves {
  /** Number of moves to tell, and of those that are too old to be told. */
  readonly count: number;
  readonly old: number;
  /** The number of the last of them; undefined without any. */
  readonly last: number | undefined;
  /** When the first move happened for which an outcome may still come; moves from it on are not due yet. */
  readonly waitsSince: number | undefined;
  /** The first moves to tell; of `finished` the first `finishes`. */
  readonly moves: readonly MoveRow[];
  readonly finishes: readonly FinishedRow[];
  /** The most frequent causes of all failures to tell. */
  readonly causes: readonly CauseRow[];
}

/** A finish, and the most frequent causes of its prompts that had failed since the experiment was reopened. */
export interface FinishedRow extends FinishRow {
  readonly causes: readonly CauseRow[];
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

/** A prompt that was told to be stuck and is no longer. */
export interface RecoveredRow extends WaitingRow {
  /** What came after it; undefined if the prompt is gone. */
  readonly nextStatus: PromptStatus | undefined;
  readonly nextSince: number | undefined;
}

/** Maximum number of prompts that one message tells to be stuck, or no longer; further ones are in the next. */
export const MAX_TOLD = 2000;

/** The store of notifications. Every method but `snapshot` rejects with a {@link StoreError} if the store fails. */
export interface NotifyStore {
  /** Returns what is in memory of a project that this process polls; undefined for others. */
  snapshot(project: string): ProjectSnapshot | undefined;
  /**
   * Notes a subscriber: what happened before this is not told, for kinds that are new, and for those of these projects that the
   * filter of the receiver did not have. Changes nothing if all is known.
   */
  subscribe(
    subscriber: Pick<Receiver, 'name' | 'on'> & Partial<Filter>,
    at: number,
    projects?: Iterable<ConfiguredProject>,
  ): Promise<void>;
  /** The fence of a subscription, to be read before what a message tells; undefined if the subscription is gone. */
  token(subscription: Subscription): Promise<string | undefined>;
  /**
   * Stores a message and what it tells, in one transaction. Returns false, and changes nothing, if anything of this kind was
   * stored for the receiver since the token was read.
   */
  compose(composed: Composed): Promise<boolean>;
  /** The stored messages of a receiver, oldest first. */
  messages(receiver: string): Promise<readonly StoredMessage[]>;
  /** Deletes a message. */
  forget(receiver: string, messageId: string): Promise<void>;
  /** For each of these projects with moves that have not been told, the time of the first of them. */
  firstMoves(
    of: MoveSubscription,
    projects: readonly string[],
  ): Promise<readonly { readonly project: string; readonly at: number }[]>;
  dueMoves(query: MoveQuery): Promise<DueMoves>;
  /** Prompts in the status that were not told to be stuck, the longest first; at most one more than {@link MAX_TOLD}. */
  waiting(
    receiver: string,
    project: string,
    status: UnfinishedStatus,
  ): Promise<readonly WaitingRow[]>;
  /** The first {@link MAX_TOLD} prompts that were told to be stuck and are no longer, and whether others were told too. */
  recovered(
    receiver: string,
    project: string,
  ): Promise<{ readonly rows: readonly RecoveredRow[]; readonly areOthersTold: boolean }>;
  /** The projects of which something was told that is not over, and since when the first of it is. */
  toldProjects(of: Subscription): Promise<ReadonlyMap<string, number>>;
}
