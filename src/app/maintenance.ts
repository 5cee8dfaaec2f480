import { StoreError } from '../monitor/errors.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { Store } from '../monitor/ports/store.ts';
import { endProcess } from './lifecycle.ts';

const PRUNE_INTERVAL_MS = 60 * 60 * 1000;
const CHECK_INTERVAL_MS = 60 * 1000;

export interface MaintenanceOptions {
  readonly store: Pick<Store, 'prune'>;
  readonly retentionMs: number;
  readonly clock: Pick<Clock, 'now'>;
  /** Called every minute to find mounted files that were replaced. */
  readonly checkMounts: () => void;
}

/** Prunes the store now and every hour, and calls `checkMounts` every minute. Returns the function that stops it. */
export function startMaintenance(options: MaintenanceOptions): () => void {
  const { store, retentionMs, clock, checkMounts } = options;
  const prune = () => {
    store.prune(clock.now() - retentionMs).catch((error: unknown) => {
      // The store has emitted the failure already, and prunes again in an hour.
      if (!(error instanceof StoreError)) endProcess(error);
    });
  };
  const checking = setInterval(checkMounts, CHECK_INTERVAL_MS);
  const pruning = setInterval(prune, PRUNE_INTERVAL_MS);
  prune();
  return () => {
    clearInterval(checking);
    clearInterval(pruning);
  };
}
