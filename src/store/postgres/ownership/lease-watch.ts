import type { Clock } from '../../../monitor/ports/clock.ts';
import { LONGEST_REMAINDER_MINUTES } from './lease.ts';

/** Time within which every living worker renews its lease: two beats of the longest one, ms. */
const RENEWED_WITHIN_MS = 150_000;

/** The lease of a worker, as read. */
export interface LeaseRow {
  readonly worker: string;
  /** Epoch µs: each renewal changes it. */
  readonly expires_us: number;
  /** Time that remains by the database's clock. */
  readonly remaining_ms: number;
}

/**
 * Creates a function that returns the rows whose leases have run out, even after the database's clock was set back: a lease
 * that was read before and not renewed has no more time than it had then, and one with more time than a lease can have only
 * until its worker must have renewed it. Call it with all rows, right after reading them.
 */
export function watchLeases(
  clock: Pick<Clock, 'monotonic'>,
): <Row extends LeaseRow>(rows: readonly Row[]) => readonly Row[] {
  let seen: ReadonlyMap<string, { readonly expires: number; readonly until: number }> = new Map();
  return (rows) => {
    const now = clock.monotonic();
    seen = new Map(
      rows.map((row) => {
        const before = seen.get(row.worker);
        const isPossible = row.remaining_ms <= LONGEST_REMAINDER_MINUTES * 60_000;
        const until = now + (isPossible ? row.remaining_ms : RENEWED_WITHIN_MS);
        const isSame = before?.expires === row.expires_us;
        return [
          row.worker,
          { expires: row.expires_us, until: isSame ? Math.min(before.until, until) : until },
        ];
      }),
    );
    return rows.filter(({ worker }) => (seen.get(worker)?.until ?? now) <= now);
  };
}
