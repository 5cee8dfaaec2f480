import type { Clock } from '../../monitor/ports.ts';

const LEAST_AGE_MS = 1000;
/** Making pages takes at most a twentieth of the time, however large they are. */
const AGE_PER_COST = 20;
const MOST_PAGES = 32;

/** Answers of `make` by key, each made once and kept for a moment; what is rejected is not kept. */
export function createPageCache<Page>(
  clock: Pick<Clock, 'monotonic'>,
): (key: string, make: () => Promise<Page>) => Promise<Page> {
  const entries = new Map<string, { readonly page: Promise<Page>; until: number }>();

  async function makeEntry(key: string, make: () => Promise<Page>): Promise<Page> {
    const started = clock.monotonic();
    const page = make();
    const entry = { page, until: Infinity };
    entries.delete(key);
    for (const [oldest] of entries) {
      if (entries.size < MOST_PAGES) break;
      entries.delete(oldest);
    }
    entries.set(key, entry);
    try {
      const made = await page;
      const ended = clock.monotonic();
      entry.until = ended + Math.max(LEAST_AGE_MS, (ended - started) * AGE_PER_COST);
      return made;
    } catch (error) {
      entry.until = -Infinity;
      throw error;
    }
  }

  return (key, make) => {
    const known = entries.get(key);
    return known !== undefined && clock.monotonic() < known.until
      ? known.page
      : makeEntry(key, make);
  };
}
