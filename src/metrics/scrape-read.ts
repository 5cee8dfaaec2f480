import { setImmediate } from 'node:timers/promises';
import { StoreError } from '../monitor/errors.ts';
import type { Clock } from '../monitor/ports/clock.ts';

/** How long a scrape waits for the store. Prometheus gives up after 10 s. */
const READ_TIMEOUT_MS = 2000;
/**
 * Slow scrapes count as a failure once they have lasted this long: at the second slow scrape with an interval of 30 or 60 s,
 * at the third with 15 s.
 */
const FAILED_AFTER_MS = 25_000;

export interface ScrapeReadOptions<Value> {
  readonly read: () => Promise<Value>;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Receives each failed read, and each slow scrape once the store has been too slow for a while. */
  readonly onFailure: (error: StoreError) => void;
}

/**
 * Creates a function that reads the store for a scrape. It resolves to undefined if the store fails or is too slow. A new
 * read begins only after the last one has ended, so that reads of a silent store do not take all connections.
 */
export function createScrapeRead<Value>(
  options: ScrapeReadOptions<Value>,
): () => Promise<Value | undefined> {
  const { read, clock, onFailure } = options;
  let underWay: Promise<Value | undefined> | undefined;
  /** Start of the current run of slow scrapes, monotonic ms; undefined after a scrape in time. */
  let slowSince: number | undefined;

  async function begin(): Promise<Value | undefined> {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      onFailure(error);
      return undefined;
    }
  }

  /** Reports a failure if the store stays slow. One slow answer is not a failure: the store may be busy with a large commit. */
  function reportSlow(): void {
    const now = clock.monotonic();
    slowSince ??= now;
    const forMs = now - slowSince;
    if (forMs < FAILED_AFTER_MS) return;
    const text = `for ${Math.round(forMs / 1000)} s the store has answered no scrape within ${READ_TIMEOUT_MS / 1000} s`;
    onFailure(new StoreError('io', text));
  }

  return async () => {
    underWay ??= begin().finally(() => {
      underWay = undefined;
    });
    const answer = await withTimeout(underWay);
    if (answer === 'late') {
      reportSlow();
      return undefined;
    }
    slowSince = undefined;
    return answer.value;
  };
}

async function withTimeout<Value>(
  answer: Promise<Value>,
): Promise<{ readonly value: Value } | 'late'> {
  const late = Promise.withResolvers<'late'>();
  const timer = setTimeout(() => {
    void yieldToInput().then(() => late.resolve('late'));
  }, READ_TIMEOUT_MS);
  try {
    return await Promise.race([answer.then((value) => ({ value })), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits until pending input is read. After a pause of the process, timers fire before that. */
async function yieldToInput(): Promise<void> {
  await setImmediate();
  await setImmediate();
}
