/** What the metrics of a worker show (docs/metrics.md#workers). */
export interface WorkerReading {
  /** Number of projects this worker owns. */
  readonly projects: number;
  /** Epoch ms; undefined before the first lease. */
  readonly leaseExpiresAt: number | undefined;
}
