import type { Clock } from '../monitor/ports/clock.ts';
import type { Coordinator, OwnedProject } from './ports.ts';
import { withTimeout } from './timeout.ts';

/** Maximum number of projects in one claim. */
const MAX_CLAIM = 1000;
/** Maximum number of projects that one claim looks at: with 100,000, a claim took longer than a beat may. */
const MAX_CANDIDATES = 5000;

export interface ClaimsOptions {
  readonly worker: string;
  readonly coordinator: Pick<Coordinator, 'claim'>;
  /** Number of the lease; what was claimed under an earlier one does not count. */
  readonly term: () => number;
  readonly clock: Pick<Clock, 'monotonic' | 'timeout'>;
  /** Maximum wait for an answer of the database, ms. */
  readonly timeoutMs: number;
  /** Projects that this worker owns. */
  readonly owned: ReadonlySet<string>;
  /** Adds to `owned` what was claimed. */
  readonly take: (projects: readonly OwnedProject[]) => void;
}

/**
 * Creates a function that claims free ones of the configured projects until this worker owns `due`, has looked at all, or its
 * lease is another one. It leaves the rest to the next call after a while, because the lease is not renewed meanwhile.
 * @throws {StoreError}
 */
export function createClaims(
  options: ClaimsOptions,
): (configured: ReadonlySet<string>, due: number) => Promise<void> {
  const { worker, coordinator, term, clock, timeoutMs, owned, take } = options;
  /** Where the next claim looks: a call may end before it has looked at all. */
  let nextPlace = 0;

  return async (configured, due) => {
    const termBefore = term();
    const endsAt = clock.monotonic() + timeoutMs / 2;
    const all = [...configured];
    let looked = 0;
    while (looked < all.length && owned.size < due && clock.monotonic() < endsAt) {
      if (nextPlace >= all.length) nextPlace = 0;
      const candidates = all
        .slice(nextPlace, nextPlace + MAX_CANDIDATES)
        .filter((project) => !owned.has(project));
      const max = Math.min(due - owned.size, MAX_CLAIM);
      const asked =
        candidates.length === 0 ? Promise.resolve([]) : coordinator.claim(worker, candidates, max);
      const taken = await withTimeout(asked, timeoutMs, clock);
      if (termBefore !== term()) return;
      take(taken);
      if (taken.length === max) continue;
      looked += MAX_CANDIDATES;
      nextPlace += MAX_CANDIDATES;
    }
  };
}
