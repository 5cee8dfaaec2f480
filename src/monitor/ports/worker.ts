/** Figures of a worker for its metrics (docs/metrics.md#workers). */
export interface WorkerReading {
  /** Number of projects this worker owns. */
  readonly projects: number;
  /** When its lease expires, epoch ms; undefined before the first lease. */
  readonly leaseExpiresAt: number | undefined;
}
