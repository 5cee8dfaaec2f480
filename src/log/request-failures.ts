import type { Logger } from './logger.ts';

const INTERVAL_MS = 60_000;

/**
 * Returns the function that logs bugs found while answering requests: at most one line a minute, with the number of
 * failures since the line before, so that a client cannot fill the log.
 */
export function createRequestFailureLog(logger: Logger): (error: unknown) => void {
  let failures = 0;
  let last: unknown;
  let isWaiting = false;

  function logFailures(): void {
    isWaiting = failures > 0;
    if (!isWaiting) return;
    const fields = { event: 'request.failed', failures, err: last };
    logger.error(fields, 'Unexpected error while answering a request');
    failures = 0;
    setTimeout(logFailures, INTERVAL_MS).unref();
  }

  return (error) => {
    failures += 1;
    last = error;
    if (!isWaiting) logFailures();
  };
}
