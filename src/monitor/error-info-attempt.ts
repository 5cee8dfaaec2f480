import {
  afterFailedTry,
  isRemovedForGood,
  nextCheckAt,
  type FailedTry,
  type Settlement,
  type Tries,
} from '../domain/failure.ts';
import { ApiError } from './errors.ts';
import type { Observer } from './events.ts';
import type { Clock } from './ports/clock.ts';
import type { EvaluationService } from './ports/service.ts';
import type { Shutdown } from './ports/shutdown.ts';
import type { PendingFailure } from './ports/store.ts';

export interface AttemptOptions {
  readonly service: Pick<EvaluationService, 'getErrorInfo'>;
  readonly clock: Clock;
  readonly emit: Observer;
  readonly shutdown: Shutdown;
}

/** What follows from an attempt: the end of the failure, or the tries so far with the time of the next one. */
export type AttemptOutcome = { readonly settlement: Settlement } | { readonly tries: Tries };

/**
 * Returns the function that tries once to explain a pending failure (docs/specification.md#settling). It resolves to
 * undefined if a shutdown interrupted the request.
 */
export function createAttempt(
  options: AttemptOptions,
): (failure: PendingFailure) => Promise<AttemptOutcome | undefined> {
  const { service, clock, emit, shutdown } = options;

  async function tryOnce(
    failure: PendingFailure,
  ): Promise<{ settlement: Settlement } | { failed: FailedTry } | undefined> {
    try {
      const info = await service.getErrorInfo(failure.project, failure.promptId, shutdown);
      emit({ type: 'error_info.fetched', ok: info !== undefined });
      return info === undefined
        ? { failed: { useless: true, reason: 'no_error_info' } }
        : { settlement: info };
    } catch (error) {
      if (shutdown.waits.aborted && !(error instanceof ApiError)) return undefined;
      if (!(error instanceof ApiError)) throw error;
      emit({ type: 'error_info.fetched', ok: false });
      return { failed: toFailedTry(error) };
    }
  }

  function waitForProject(tries: Tries, removedAt: number): AttemptOutcome {
    const now = clock.now();
    return isRemovedForGood(removedAt, now)
      ? { settlement: { reason: 'project_removed' } }
      : { tries: { ...tries, lastAt: now, nextAt: nextCheckAt(now) } };
  }

  return async (failure) => {
    const { promptId, removedAt, tries } = failure;
    if (removedAt !== undefined) return waitForProject(tries, removedAt);
    if (promptId === '.' || promptId === '..') return { settlement: { reason: 'invalid_id' } };
    const result = await tryOnce(failure);
    return result && 'failed' in result
      ? afterFailedTry(tries, result.failed, clock.now())
      : result;
  };
}

/** Distinguishes useless answers from failures that may pass (docs/specification.md#settling). */
function toFailedTry(error: ApiError): FailedTry {
  const { reason, details } = error;
  switch (reason) {
    case 'not_found':
    case 'validation':
    case 'redirect':
    case 'too_large':
    case 'invalid_response':
      return { useless: true, reason };
    case 'client_error':
      if (details.statusCode !== 408) return { useless: true, reason };
      break;
    case 'auth':
    case 'rate_limited':
    case 'server_error':
    case 'timeout':
    case 'network':
    case 'tls':
      break;
  }
  return { useless: false, retryAfterMs: details.retryAfterMs };
}
