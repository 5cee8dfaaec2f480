import { StoreError } from '../../../monitor/errors.ts';
import type { Clock, Timer } from '../../../monitor/ports/clock.ts';
import type { ReadThread, StoreThread } from './thread-client.ts';

/** Commits of more rows can keep the store's thread busy for longer than a reader should wait. */
const LARGE_ROWS = 1000;
/** Time for which the second thread waits for another large commit, ms. */
const IDLE_MS = 30_000;

/** Reads for page, API, event stream and scrapes. */
export interface ShownReads extends Pick<ReadThread, 'read'> {
  /**
   * Makes a commit of so many rows. During a large one, and for half a minute after that, a second thread answers the reads.
   */
  duringCommit<Result>(rows: number, commit: () => Promise<Result>): Promise<Result>;
  /** Ends the second thread. */
  close(): Promise<void>;
}

export interface ShownReadsOptions {
  readonly thread: Pick<StoreThread, 'read'>;
  readonly clock: Pick<Clock, 'timeout'>;
  /** Starts the second thread. @throws {StoreError} */
  readonly start: () => Promise<ReadThread>;
}

/** Answers reads in the store's thread, or in a second one. That takes 13 MB, so it runs only while it is needed. */
export function createShownReads({ thread, clock, start }: ShownReadsOptions): ShownReads {
  let starting: Promise<void> | undefined;
  let second: ReadThread | undefined;
  let commits = 0;
  let timer: Timer | undefined;

  /** Starts the second thread. If that fails, the reads stay where they are, and the next large commit tries again. */
  async function startSecond(): Promise<void> {
    let started: ReadThread | undefined;
    try {
      started = await start();
      // It has opened the store by its name.
      await thread.read({ method: 'assertInPlace', args: [] });
      second = started;
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      await started?.close();
    } finally {
      starting = undefined;
    }
  }

  async function endSecond(): Promise<void> {
    const ending = second;
    second = undefined;
    await ending?.close();
  }

  return {
    read: (call) => (second === undefined ? thread.read(call) : second.read(call)),
    duringCommit: async (rows, commit) => {
      if (rows <= LARGE_ROWS) return await commit();
      commits += 1;
      timer?.cancel();
      try {
        if (second === undefined) await (starting ??= startSecond());
        return await commit();
      } finally {
        commits -= 1;
        if (commits === 0) timer = clock.timeout(IDLE_MS, () => void endSecond()).unref();
      }
    },
    close: async () => {
      timer?.cancel();
      await endSecond();
    },
  };
}
