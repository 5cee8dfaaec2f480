import type { Observer } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { WorkerIdentity } from './ports.ts';

/** A new configuration reaches all workers within this time, ms. */
const ROLLOUT_MS = 5 * 60_000;

export interface AgreementOptions {
  /** Of this worker. */
  readonly id: string;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Is told `worker.config_differs`, once until all agree again. */
  readonly emit: Observer;
}

/**
 * Sees to it that workers which have other configurations than this one are told of: which projects are watched is up
 * to whoever applied his last. One without a digest need not agree. To be called with what each beat brings.
 */
export function watchAgreement({
  id,
  clock,
  emit,
}: AgreementOptions): (workers: readonly WorkerIdentity[], digest: string) => void {
  let since: number | undefined;
  let isTold = false;
  return (workers, digest) => {
    const others = workers.filter(
      (one) => one.id !== id && one.configDigest !== '' && one.configDigest !== digest,
    );
    if (digest === '' || others.length === 0) {
      since = undefined;
      isTold = false;
      return;
    }
    since ??= clock.monotonic();
    if (isTold || clock.monotonic() - since < ROLLOUT_MS) return;
    isTold = true;
    emit({ type: 'worker.config_differs', worker: id, others: others.map((one) => one.id) });
  };
}
