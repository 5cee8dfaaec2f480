import type { Observer } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { WorkerIdentity } from './ports.ts';

/** Time that a rollout may take before a difference is logged, ms. */
const ROLLOUT_MS = 5 * 60_000;

export interface AgreementOptions {
  /** Name of this worker. */
  readonly id: string;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Receives `worker.config_differs` once; again only after all configurations have agreed. */
  readonly emit: Observer;
}

/**
 * Creates a function that reports workers whose configuration has differed from that of this worker for longer than a
 * rollout takes (docs/specification.md#different-configurations). Call it with the result of each beat. Ignores workers
 * with an empty digest.
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
