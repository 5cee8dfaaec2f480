import type { Clock } from '../../monitor/ports/clock.ts';
import type { Asker } from '../limits/client.ts';
import { createTimeBudget } from '../limits/time-budget.ts';
import { createFairQueue } from '../limits/fair-queue.ts';

const MIN_AGE_MS = 1000;
const MAX_PAGES = 32;
/**
 * Time that all pages together may take. After a rest a few people who look around do not wait, and a client alone always
 * gets its page: the longest pause is shorter than the longest wait.
 */
const BUDGET = { share: 1 / 20, burstMs: 1000, maxPauseMs: 8000 };
const LIMITS = { maxWaiting: 32, maxWaitingPerKey: 32, maxWaitMs: 12_000 };

/**
 * Answers with the page of a key, made once for all who ask and kept for a moment. A page that has to be made waits for
 * its client's turn and for the time that making pages may take; undefined if that takes too long or too many wait. What
 * is rejected is not kept.
 */
export type PageCache<Page> = (
  key: string,
  asker: Asker,
  make: () => Promise<Page>,
) => Promise<Page | undefined>;

export function createPageCache<Page>(clock: Pick<Clock, 'monotonic'>): PageCache<Page> {
  const entries = new Map<string, { readonly page: Promise<Page>; until: number }>();
  const budget = createTimeBudget({ clock, ...BUDGET });
  const queue = createFairQueue({ budget, ...LIMITS });

  async function makeEntry(key: string, make: () => Promise<Page>): Promise<Page> {
    const started = clock.monotonic();
    const page = make();
    const entry = { page, until: Infinity };
    entries.delete(key);
    for (const [oldest] of entries) {
      if (entries.size < MAX_PAGES) break;
      entries.delete(oldest);
    }
    entries.set(key, entry);
    try {
      const made = await page;
      const ended = clock.monotonic();
      entry.until = ended + Math.max(MIN_AGE_MS, (ended - started) / BUDGET.share);
      return made;
    } catch (error) {
      entry.until = -Infinity;
      throw error;
    }
  }

  function cached(key: string): Promise<Page> | undefined {
    const known = entries.get(key);
    return known !== undefined && clock.monotonic() < known.until ? known.page : undefined;
  }

  return async (key, asker, make) => {
    const known = cached(key);
    if (known !== undefined) return await known;
    using turn = await queue.waitForTurn(asker);
    if (turn === undefined) return undefined;
    // It may have been made for another client meanwhile.
    return await (cached(key) ?? makeEntry(key, make));
  };
}
