import type { Clock } from '../monitor/ports.ts';
import type { Logger } from './logger.ts';

const INTERVAL_MS = 60_000;

/**
 * Logs bugs that were met while requests were answered, one line a minute at most: whoever sends requests must not be
 * able to fill the log.
 */
export function createRequestFailureLog(
  logger: Logger,
  clock: Pick<Clock, 'monotonic'>,
): (error: unknown) => void {
  let loggedAt = -Infinity;
  let failures = 0;
  return (error) => {
    failures += 1;
    const now = clock.monotonic();
    if (now - loggedAt < INTERVAL_MS) return;
    const fields = { event: 'request.failed', failures, err: error };
    logger.error(fields, 'Unexpected error, a request could not be answered');
    loggedAt = now;
    failures = 0;
  };
}
