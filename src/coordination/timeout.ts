import { StoreError } from '../monitor/errors.ts';

/**
 * Rejects if `work` takes longer than `ms`. The work is not cancelled: the database may still do it.
 * @throws {StoreError} `io` after the timeout
 */
export async function withTimeout<T>(work: Promise<T>, ms: number): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    late.reject(new StoreError('io', 'the database did not answer in time'));
  }, ms);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
