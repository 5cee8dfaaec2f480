import { StoreError } from '../monitor/errors.ts';

/**
 * A way to read that ends within so many ms, by a {@link StoreError} if nothing came until then. The store is not asked again
 * before it has answered: a mute one would have all its connections taken by those that have long given up.
 */
export function readWithin<Value>(ms: number, read: () => Promise<Value>): () => Promise<Value> {
  let underWay: Promise<Value> | undefined;
  return async () => {
    underWay ??= read().finally(() => {
      underWay = undefined;
    });
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      late.reject(new StoreError('io', `the store did not answer a scrape within ${ms / 1000} s`));
    }, ms);
    try {
      return await Promise.race([underWay, late.promise]);
    } finally {
      clearTimeout(timer);
    }
  };
}
