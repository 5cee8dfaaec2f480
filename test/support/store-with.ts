import type { Store } from '../../src/monitor/ports/store.ts';

/** Returns the same store with some methods replaced. */
export function storeWith<Whole extends object = Store>(
  store: Whole,
  replaced: Partial<Whole>,
): Whole {
  return new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(replaced, name) ?? Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
