import type { NoErrorInfoReason, ErrorInfo } from '../domain/failure.ts';
import type { AnomalyReason, KnownRecord } from '../domain/record.ts';
import type { Kind, Status } from '../domain/status.ts';
import type { ApiErrorDetails, PollFailureReason, StoreFailureReason } from './errors.ts';
import type { CommittedTransition, FinishRow, PollHealth } from './ports/store.ts';
import type { ConfiguredProject } from './ports/watched-project.ts';

export const ENDPOINTS = ['list_prompts', 'get_prompt', 'list_datasets'] as const;
export type Endpoint = (typeof ENDPOINTS)[number];

/** Why a request has no usable response: a label of a metric (docs/metrics.md#values-of-labels). */
export const REQUEST_FAILURE_REASONS = [
  'timeout',
  'network',
  'tls',
  'too_large',
  'invalid_response',
  'redirect',
] as const;
type RequestFailureReason = (typeof REQUEST_FAILURE_REASONS)[number];

/**
 * Something that happened in the monitor. Findings of a poll are emitted once, after its commit or failed commit;
 * requests and the start of a run are emitted as they happen. Durations are ms, times epoch ms.
 */
export type MonitorEvent =
  | {
      readonly type: 'poll.finished';
      readonly project: string;
      readonly durationMs: number;
      readonly health: PollHealth;
      /** Consecutive failures before this poll. */
      readonly failuresBefore: number;
      /** Why the poll failed; undefined if it succeeded. */
      readonly failure: PollFailure | undefined;
      /** Whether its outcome is stored. A poll that the service failed can lack that too. */
      readonly isStored: boolean;
      /** Whether every listing was the same as the last one. */
      readonly unchanged: boolean;
      /** Number of prompts in the listing; undefined if the poll failed. */
      readonly prompts: number | undefined;
      readonly transitions: number;
      /** Whether anything was stored besides the poll's health. */
      readonly changed: boolean;
    }
  | {
      readonly type: 'listing.baseline';
      readonly project: string;
      readonly kind: Kind;
      readonly counts: Readonly<Partial<Record<Status, number>>>;
    }
  /** The service has further pages of a listing, which are not read. Emitted once for each listing of a client. */
  | { readonly type: 'listing.paged'; readonly project: string; readonly kind: Kind }
  | {
      readonly type: 'record.transition';
      readonly project: string;
      readonly transition: CommittedTransition;
    }
  | {
      readonly type: 'record.gone';
      readonly project: string;
      readonly kind: Kind;
      readonly record: KnownRecord;
    }
  | { readonly type: 'experiment.finished'; readonly finish: FinishRow }
  | {
      readonly type: 'items.anomalous';
      readonly project: string;
      readonly kind: Kind;
      readonly reason: AnomalyReason;
      readonly count: number;
      /** Positions of the first 10 items. */
      readonly indexes: readonly number[];
      /** False if the last listing had the same anomalies, which are then counted but not logged. */
      readonly changed: boolean;
    }
  | {
      readonly type: 'prompt.failed';
      readonly project: string;
      readonly transitionId: number;
      readonly promptId: string;
      readonly promptName: string | undefined;
      readonly errorInfo: ErrorInfo | null;
      readonly errorMsgTruncated: boolean;
      /** Whether the error_info is not as documented. */
      readonly isUnusual?: boolean | undefined;
      readonly reason: NoErrorInfoReason | undefined;
      /** Id of its cause. */
      readonly cause: string;
    }
  | { readonly type: 'error_info.fetched'; readonly ok: boolean }
  | {
      readonly type: 'api.responded';
      readonly endpoint: Endpoint;
      readonly statusCode: number;
    }
  | {
      readonly type: 'api.request_finished';
      readonly endpoint: Endpoint;
      readonly durationMs: number;
      /** Size of the body after decompression. */
      readonly bytes: number;
      readonly failure: RequestFailureReason | undefined;
    }
  | {
      /** Emitted when the wait begins. */
      readonly type: 'api.retry_scheduled';
      readonly project: string;
      readonly endpoint: Endpoint;
      /** Number of the failed attempt, from 1. */
      readonly attempt: number;
      readonly delayMs: number;
      readonly reason: PollFailureReason;
      readonly statusCode: number | undefined;
    }
  | { readonly type: 'api.retry_sent'; readonly endpoint: Endpoint }
  | { readonly type: 'store.committed'; readonly durationMs: number }
  | {
      /** A read or write of the store failed, or scrapes got no answer for too long. The name is older than its meaning. */
      readonly type: 'store.commit_failed';
      readonly reason: StoreFailureReason;
      readonly error: Error;
    }
  | {
      /** Nothing was stored, because the project has another token by now: another worker may own it. */
      readonly type: 'store.commit_refused';
      readonly project: string;
    }
  | {
      /** The first beat of this worker failed, or a later one for another reason while none has succeeded. */
      readonly type: 'worker.waiting';
      readonly reason: StoreFailureReason;
      readonly error: Error;
    }
  | {
      readonly type: 'worker.claimed' | 'worker.released' | 'worker.lease_lost';
      readonly worker: string;
      /** Number of projects claimed, released or lost. */
      readonly projects: number;
      /** Number of projects that the worker owns afterwards. */
      readonly owned: number;
    }
  | {
      /** Emitted when configurations differ for longer than a rollout takes. */
      readonly type: 'worker.config_differs';
      readonly worker: string;
      /** Workers with another configuration. */
      readonly others: readonly string[];
    }
  | {
      /** Emitted when a worker has configured its projects again, because the database had others. */
      readonly type: 'worker.projects_restored';
      readonly worker: string;
      /** Number of projects that are configured now. */
      readonly projects: number;
    }
  | {
      /** The projects were configured, at the start or by a reload. */
      readonly type: 'config.applied';
      readonly projects: ReadonlyMap<string, ConfiguredProject>;
    }
  | {
      readonly type: 'config.reloaded';
      /** Number of configured projects. */
      readonly projects: number;
      readonly changes: ConfigChanges;
    }
  | {
      /** The old configuration stays. */
      readonly type: 'config.reload_failed';
      /** One line each. */
      readonly reasons: readonly string[];
      /** Whether the log has the failure already, because watched files were loaded again. */
      readonly isRepeated: boolean;
    }
  | {
      /** A receiver has taken a message. */
      readonly type: 'notification.sent';
      readonly receiver: string;
      readonly id: string;
      /** Type of the message. */
      readonly message: string;
      /** What seems wrong all the same, such as a refused recipient beside others. */
      readonly doubt?: string | undefined;
    }
  | {
      /** The first failed attempt since the receiver worked. */
      readonly type: 'notification.failed';
      readonly receiver: string;
      /** One line without secret or address. */
      readonly reason: string;
      readonly statusCode: number | undefined;
    }
  | {
      readonly type: 'notification.recovered';
      readonly receiver: string;
      /** Consecutive failed attempts before this one. */
      readonly failuresBefore: number;
    }
  | {
      /** The first of several failures of the store in a row, which told a receiver nothing. */
      readonly type: 'notification.store_failed';
      readonly receiver: string;
      readonly error: Error;
    }
  | {
      /** A receiver is never told this, because it is too old. */
      readonly type: 'notification.given_up';
      readonly receiver: string;
      readonly project: string;
      /** Type of the message. */
      readonly message: string;
      /** Number of prompts or projects of which it would have told. */
      readonly count: number;
      /** Why the last attempt failed; undefined if none was made. */
      readonly reason: string | undefined;
    }
  | { readonly type: 'scheduler.started_poll'; readonly project: string; readonly lagMs: number }
  | { readonly type: 'scheduler.overlapped'; readonly project: string }
  /**
   * The first poll after a pause has found what moved meanwhile, which is emitted next. `since` is the last poll before it, `at`
   * is the time of what it found, epoch ms.
   */
  | {
      readonly type: 'project.resumed';
      readonly project: string;
      readonly since: number | undefined;
      readonly at: number;
      readonly transitions: number;
    }
  | { readonly type: 'scheduler.missed'; readonly project: string; readonly count: number };

export type FinishedPoll = Extract<MonitorEvent, { type: 'poll.finished' }>;

/** What a reload has changed, in names only: a value could be a secret. */
export interface ConfigChanges {
  /** Ids of projects, some of them if there are many. */
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly changed: readonly string[];
  /** Number of ids that these lists leave out; undefined if it is 0. */
  readonly omitted: number | undefined;
  /** Options that belong to no project. */
  readonly sections: readonly string[];
}

export interface PollFailure {
  readonly reason: PollFailureReason;
  readonly message: string;
  readonly details: ApiErrorDetails;
}

export type Observer = (event: MonitorEvent) => void;

/** Returns an observer that passes each event to all `observers`. If one throws, the others still get the event. */
export function emitTo(
  observers: readonly Observer[],
  onError: (error: unknown, event: MonitorEvent) => void,
): Observer {
  return (event) => {
    for (const observe of observers) {
      try {
        observe(event);
      } catch (error) {
        onError(error, event);
      }
    }
  };
}

/** The event of this type. */
export type EventOf<Type extends MonitorEvent['type']> = MonitorEvent & { readonly type: Type };
