import type { ReadLease } from './backend.ts';
import { MINUTE, SECOND } from './durations.ts';
import type { Partitions } from './faults/partitions.ts';
import type { Host } from './hosts.ts';
import type { Kernel } from './kernel.ts';

/** Maximum time that a lease can have left, ms. */
const MAX_REMAINING_MS = 10 * MINUTE;
/** Time within which every living worker renews a lease that seems to have more left, ms. */
const RENEWED_WITHIN_MS = 150 * SECOND;

/**
 * Tracks the leases of workers that have ended, or are cut off from the database. Their projects rest, and so do those that
 * the others leave to them as their share. A worker that has read such a lease deletes it when its time is over, whatever
 * the database's clock does. A lease that a standby brings back, or that is read late, holds until it ends by that clock.
 */
export interface DeadLeases {
  /** Records the leases of all workers, as a process has read them. */
  read(reader: string, leases: readonly ReadLease[]): void;
  /** Returns when a process last read such a lease that holds and that no process is overdue to delete. */
  heldAt(): number;
}

export function createDeadLeases(
  kernel: Kernel,
  hosts: readonly Host[],
  { isCutOff }: Pick<Partitions, 'isCutOff'>,
): DeadLeases {
  /** Leases as last read, by reader and worker. `until` is when their time is over, in virtual time. */
  const known = new Map<string, ReadonlyMap<string, { readonly expires: number; until: number }>>();
  let heldAt = -Infinity;

  function note(reader: string, leases: readonly ReadLease[]): void {
    const now = kernel.now();
    const before = known.get(reader);
    const after = new Map<string, { readonly expires: number; until: number }>();
    for (const { worker, expires_us: expires, remaining_ms: remaining } of leases) {
      const same = before?.get(worker);
      const until = now + (remaining <= MAX_REMAINING_MS ? remaining : RENEWED_WITHIN_MS);
      const earlier = same?.expires === expires ? same.until : Infinity;
      after.set(worker, { expires, until: Math.min(until, earlier) });
    }
    known.set(reader, after);
  }

  /** Whether no process that can delete the lease is overdue to do so. */
  function mayHold({ worker, expires_us }: ReadLease): boolean {
    return hosts.every((host) => {
      const { life } = host;
      if (life?.steadySince === undefined || life.machine.isPaused()) return true;
      if (isCutOff(host)) return true;
      const lease = known.get(life.machine.name)?.get(worker);
      return lease?.expires !== expires_us || lease.until >= kernel.now();
    });
  }

  return {
    read: (reader, leases) => {
      note(reader, leases);
      const running = new Set(hosts.map(({ life }) => life?.machine.name));
      for (const name of known.keys()) if (!running.has(name)) known.delete(name);
      const connected = new Set(
        hosts.flatMap((host) => (isCutOff(host) ? [] : [host.life?.machine.name])),
      );
      const isHeld = leases.some(
        (lease) => lease.holds && !connected.has(lease.worker) && mayHold(lease),
      );
      if (isHeld) heldAt = kernel.now();
    },
    heldAt: () => heldAt,
  };
}
