import type { NoErrorInfoReason, ErrorInfo } from '../domain/failure.ts';
import type { AnomalyReason, KnownRecord } from '../domain/record.ts';
import type { Kind, Status } from '../domain/status.ts';
import type { ApiErrorDetails, PollFailureReason, StoreFailureReason } from './errors.ts';
import type { CommittedTransition, PollHealth } from './ports/store.ts';

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
export type RequestFailureReason = (typeof REQUEST_FAILURE_REASONS)[number];

export const REFUSAL_REASONS = ['epoch', 'version'] as const;
type RefusalReason = (typeof REFUSAL_REASONS)[number];

/**
 * What has happened. What a poll has found is emitted once, after its commit or the failure of that; requests and the
 * start of a run are emitted as they happen. Durations are ms, times epoch ms.
 */
export type MonitorEvent =
  | {
      readonly type: 'poll.finished';
      readonly project: string;
      readonly durationMs: number;
      readonly health: PollHealth;
      /** As they were before this poll. */
      readonly failuresBefore: number;
      /** Undefined if the poll succeeded. */
      readonly failure: PollFailure | undefined;
      /** Every listing of it was the same as the last time. */
      readonly unchanged: boolean;
      /** Prompts that its listing showed; undefined if that could not be read. */
      readonly prompts: number | undefined;
      readonly transitions: number;
      /** Something was stored besides the poll's own outcome. */
      readonly changed: boolean;
    }
  | {
      readonly type: 'listing.baseline';
      readonly project: string;
      readonly kind: Kind;
      readonly counts: Readonly<Partial<Record<Status, number>>>;
    }
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
  | {
      readonly type: 'items.anomalous';
      readonly project: string;
      readonly kind: Kind;
      readonly reason: AnomalyReason;
      readonly count: number;
      /** The first 10. */
      readonly indexes: readonly number[];
      /** False when the last listing had the same ones: counted, not logged. */
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
      readonly reason: NoErrorInfoReason | undefined;
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
      /** Of the body, after decompression. */
      readonly bytes: number;
      readonly failure: RequestFailureReason | undefined;
    }
  | {
      /** Emitted when the wait begins. */
      readonly type: 'api.retry_scheduled';
      readonly project: string;
      readonly endpoint: Endpoint;
      /** Of the attempt that failed, from 1. */
      readonly attempt: number;
      readonly delayMs: number;
      readonly reason: PollFailureReason;
      readonly statusCode: number | undefined;
    }
  | { readonly type: 'api.retried'; readonly endpoint: Endpoint }
  | { readonly type: 'store.committed'; readonly durationMs: number }
  | {
      readonly type: 'store.commit_failed';
      readonly reason: StoreFailureReason;
      readonly error: Error;
    }
  | {
      /** Nothing of it was stored: another worker owns the project by now (`epoch`), or committed it first (`version`). */
      readonly type: 'store.commit_refused';
      readonly project: string;
      readonly reason: RefusalReason;
      /** It came from an earlier ownership of this worker, and says nothing about the one that it has now. */
      readonly isPast: boolean;
    }
  | {
      readonly type: 'worker.claimed' | 'worker.released' | 'worker.lease_lost';
      readonly worker: string;
      /** So many that it took, gave back or lost. */
      readonly projects: number;
      /** That it has now. */
      readonly owned: number;
    }
  | {
      /** For longer than it takes to roll one out. */
      readonly type: 'worker.config_differs';
      readonly worker: string;
      /** The workers that have another configuration. */
      readonly others: readonly string[];
    }
  | { readonly type: 'scheduler.started_poll'; readonly project: string; readonly lagMs: number }
  | { readonly type: 'scheduler.overlapped'; readonly project: string }
  | { readonly type: 'scheduler.missed'; readonly project: string; readonly count: number };

export type FinishedPoll = Extract<MonitorEvent, { type: 'poll.finished' }>;

export interface PollFailure {
  readonly reason: PollFailureReason;
  readonly message: string;
  readonly details: ApiErrorDetails;
}

export type Observer = (event: MonitorEvent) => void;

/** Tells every observer; one that throws silences no other, and its error goes to `onError`. */
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
