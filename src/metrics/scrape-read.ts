import { setImmediate } from 'node:timers/promises';
import { StoreError } from '../monitor/errors.ts';
import type { Clock } from '../monitor/ports.ts';

/** Prometheus gives a target 10 s, and thinks it is down after that. */
const PATIENCE_MS = 2000;
/** Two scrapes in a row are as far apart where there is one every 30 or 60 s, three where there is one every 15 s. */
const MUTE_AFTER_MS = 25_000;

export interface ScrapeReadOptions<Value> {
  readonly read: () => Promise<Value>;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Is told each read that failed, and each scrape for which a store was too slow that has been so for a while. */
  readonly onFailure: (error: StoreError) => void;
}

/**
 * A way to read the store for a scrape: undefined if it fails, or does not answer in time. It is not asked again before it
 * has answered: a mute one would have all its connections taken by scrapes that have long given up.
 */
export function createScrapeRead<Value>(
  options: ScrapeReadOptions<Value>,
): () => Promise<Value | undefined> {
  const { read, clock, onFailure } = options;
  let underWay: Promise<Value | undefined> | undefined;
  /** When a scrape first waited in vain, none since having been answered in time. */
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

  /** One slow answer is none of the failures that wake somebody: everything may have been committed. */
  function noteSlow(): void {
    const now = clock.monotonic();
    slowSince ??= now;
    const forMs = now - slowSince;
    if (forMs < MUTE_AFTER_MS) return;
    const text = `for ${Math.round(forMs / 1000)} s the store has answered no scrape within ${PATIENCE_MS / 1000} s`;
    onFailure(new StoreError('io', text));
  }

  return async () => {
    underWay ??= begin().finally(() => {
      underWay = undefined;
    });
    const answer = await withinPatience(underWay);
    if (answer === 'late') {
      noteSlow();
      return undefined;
    }
    slowSince = undefined;
    return answer.value;
  };
}

async function withinPatience<Value>(
  answer: Promise<Value>,
): Promise<{ readonly value: Value } | 'late'> {
  const late = Promise.withResolvers<'late'>();
  const timer = setTimeout(() => {
    void yieldToInput().then(() => late.resolve('late'));
  }, PATIENCE_MS);
  try {
    return await Promise.race([answer.then((value) => ({ value })), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** In a process that was stopped timers run before what has come meanwhile is read, which the second turn can use. */
async function yieldToInput(): Promise<void> {
  await setImmediate();
  await setImmediate();
}
