import type { Clock } from '../monitor/ports.ts';

/** A row of `worker` as it was read. */
export interface LeaseRow {
  readonly worker: string;
  /** Epoch µs: each renewal changes it. */
  readonly expires_us: number;
  /** By the database's clock. */
  readonly remaining_ms: number;
}

/**
 * Tells which of the leases that were read have run out, also if the database's clock was set back since: one that was read
 * before, and was not renewed, has no more time than it had then. To be called with all rows, as soon as they were read.
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
        const until = now + row.remaining_ms;
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
