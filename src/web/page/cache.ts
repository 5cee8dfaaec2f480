import type { Clock } from '../../monitor/ports/clock.ts';
import type { Requester } from '../limits/client.ts';
import { createTimeBudget } from '../limits/time-budget.ts';
import { createFairQueue } from '../limits/fair-queue.ts';

const MIN_AGE_MS = 1000;
const MAX_PAGES = 32;
/**
 * Share of the time for making pages. The burst lets a few people browse without a pause. A single client always gets its
 * page: the longest pause is shorter than the longest wait.
 */
const BUDGET = { share: 1 / 20, burstMs: 1000, maxPauseMs: 8000 };
const LIMITS = { maxWaiting: 32, maxWaitingPerKey: 32, maxWaitMs: 12_000 };

/**
 * Resolves to the page of a key, which is made once for all clients and kept for a moment. A page that has to be made
 * waits for the turn of its client and for the time budget; undefined if the wait is too long or too many wait. An error
 * is not kept.
 */
export type PageCache<Page> = (
  key: string,
  requester: Requester,
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
    const entry = entries.get(key);
    return entry !== undefined && clock.monotonic() < entry.until ? entry.page : undefined;
  }

  return async (key, requester, make) => {
    const known = cached(key);
    if (known !== undefined) return await known;
    using turn = await queue.waitForTurn(requester);
    if (turn === undefined) return undefined;
    // Another client may have had the page made meanwhile.
    return await (cached(key) ?? makeEntry(key, make));
  };
}
