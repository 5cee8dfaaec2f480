import { StoreError } from '../monitor/errors.ts';

/** What `work` brings within so many ms. @throws {StoreError} if it takes longer; it may come true all the same */
export async function inTime<T>(work: Promise<T>, ms: number): Promise<T> {
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
