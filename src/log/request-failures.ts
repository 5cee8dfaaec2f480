import type { Logger } from './logger.ts';

const INTERVAL_MS = 60_000;

/**
 * Logs bugs in the answering of requests, at most one line a minute, which counts all since the line before: a client must
 * not be able to fill the log.
 */
export function createRequestFailureLog(logger: Logger): (error: unknown) => void {
  let failures = 0;
  let last: unknown;
  let isWaiting = false;

  function logFailures(): void {
    isWaiting = failures > 0;
    if (!isWaiting) return;
    const fields = { event: 'request.failed', failures, err: last };
    logger.error(fields, 'Unexpected error, a request could not be answered');
    failures = 0;
    setTimeout(logFailures, INTERVAL_MS).unref();
  }

  return (error) => {
    failures += 1;
    last = error;
    if (!isWaiting) logFailures();
  };
}
