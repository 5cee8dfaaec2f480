import { StoreError } from '../monitor/errors.ts';
import type { Clock } from '../monitor/ports/clock.ts';

/**
 * Rejects if `work` takes longer than `ms`. The work is not cancelled: the database may still do it.
 * @throws {StoreError} `io` after the timeout
 */
export async function withTimeout<T>(
  work: Promise<T>,
  ms: number,
  clock: Pick<Clock, 'timeout'>,
): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = clock.timeout(ms, () => {
    late.reject(new StoreError('io', 'the database did not answer in time'));
  });
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    timer.cancel();
  }
}
