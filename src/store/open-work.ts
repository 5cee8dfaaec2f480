import { StoreError } from '../monitor/errors.ts';

/** Work that a close waits for. */
export interface OpenWork {
  /** Runs work. @throws {StoreError} after `refuse` */
  run<Result>(work: () => Promise<Result>): Promise<Result>;
  /** Returns a function that runs `work` with its parameters. */
  readonly guarded: Guard;
  /** Refuses work from now on. */
  refuse(): void;
  readonly isRefused: () => boolean;
  /** Resolves when no work runs, and refuses work from then on. */
  close(): Promise<void>;
}

type Guard = <Parameters extends readonly unknown[], Result>(
  work: (...parameters: Parameters) => Promise<Result>,
) => (...parameters: Parameters) => Promise<Result>;

export function createOpenWork(): OpenWork {
  const underWay = new Set<Promise<unknown>>();
  let isRefused = false;
  async function run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (isRefused) throw new StoreError('other', 'the store is closed');
    const running = work();
    underWay.add(running);
    try {
      return await running;
    } finally {
      underWay.delete(running);
    }
  }

  return {
    run,
    guarded:
      (work) =>
      (...parameters) =>
        run(() => work(...parameters)),
    refuse: () => {
      isRefused = true;
    },
    isRefused: () => isRefused,
    close: async () => {
      while (underWay.size > 0) await Promise.allSettled(underWay);
      // In the same turn, so that no work begins in between.
      isRefused = true;
    },
  };
}
