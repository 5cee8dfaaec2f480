import type { Logger } from './logger.ts';

const INTERVAL_MS = 60_000;

/**
 * Logs bugs that were met while requests were answered, one line a minute at most, so that all are counted in one: whoever
 * sends requests must not be able to fill the log.
 */
export function createRequestFailureLog(logger: Logger): (error: unknown) => void {
  let failures = 0;
  let last: unknown;
  let waiting = false;

  function tell(): void {
    waiting = failures > 0;
    if (!waiting) return;
    const fields = { event: 'request.failed', failures, err: last };
    logger.error(fields, 'Unexpected error, a request could not be answered');
    failures = 0;
    setTimeout(tell, INTERVAL_MS).unref();
  }

  return (error) => {
    failures += 1;
    last = error;
    if (!waiting) tell();
  };
}
