import type { Observer } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { WorkerIdentity } from './ports.ts';

/** Time that a new configuration may take to reach every worker, ms. */
const ROLLOUT_MS = 5 * 60_000;

export interface AgreementOptions {
  /** Name of this worker. */
  readonly id: string;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Receives `worker.config_differs`, once until all workers agree again. */
  readonly emit: Observer;
}

/**
 * Reports workers whose configuration differs from that of this worker for longer than a rollout takes
 * (docs/specification.md#different-configurations). Workers without a digest need not agree. Call the result with the
 * answer to each beat.
 */
export function watchAgreement({
  id,
  clock,
  emit,
}: AgreementOptions): (workers: readonly WorkerIdentity[], digest: string) => void {
  let since: number | undefined;
  let isReported = false;
  return (workers, digest) => {
    const others = workers.filter(
      (one) => one.id !== id && one.configDigest !== '' && one.configDigest !== digest,
    );
    if (digest === '' || others.length === 0) {
      since = undefined;
      isReported = false;
      return;
    }
    since ??= clock.monotonic();
    if (isReported || clock.monotonic() - since < ROLLOUT_MS) return;
    isReported = true;
    emit({ type: 'worker.config_differs', worker: id, others: others.map((one) => one.id) });
  };
}
