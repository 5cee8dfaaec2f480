import type { PollHealth } from '../../monitor/ports/store.ts';
import { StoreError } from '../../monitor/errors.ts';

/** Health after a poll that changed nothing else. */
export interface WaitingHealth {
  readonly epoch: number;
  /** Version of the project, if it is known. With another version the unchanged listing is another one. */
  readonly version: number | undefined;
  readonly health: PollHealth;
  readonly nextTickAt: number | undefined;
}

export interface HealthQueue {
  /** Resolves when the health waits to be written with others; after a failed write, when it is written. @throws {StoreError} */
  add(project: string, health: WaitingHealth): Promise<void>;
  /** Drops the waiting health of this project as out of date; resolves when none of it is being written. */
  supersede(project: string): Promise<void>;
  /** Drops the health of this project that waits or is being written: the project has no owner here any more. */
  drop(project: string): void;
  /** Writes all waiting health. @throws {StoreError} and the health goes on waiting */
  flush(): Promise<void>;
  /** Writes all waiting health one last time. Ignores a failure of the database. */
  close(): Promise<void>;
}

/** Time for which health waits for that of other projects, ms. Stored health is older by at most this and a commit. */
const GATHER_MS = 1000;

/**
 * Gathers the health of polls that changed nothing, the newest of each project, and has `write` write it together; `write`
 * emits its commit or its failure.
 */
export function createHealthQueue(
  write: (waiting: ReadonlyMap<string, WaitingHealth>) => Promise<void>,
): HealthQueue {
  let waiting = new Map<string, WaitingHealth>();
  let writing:
    { readonly taken: Map<string, WaitingHealth>; readonly done: Promise<void> } | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isFailing = false;
  let isClosed = false;

  async function writeAll(taken: ReadonlyMap<string, WaitingHealth>): Promise<void> {
    try {
      await write(taken);
      isFailing = false;
    } catch (error) {
      isFailing = true;
      waiting = new Map([...taken, ...waiting]);
      schedule();
      throw error;
    } finally {
      writing = undefined;
    }
  }

  async function flush(): Promise<void> {
    if (writing !== undefined) {
      await writing.done.catch(ignore);
      return await flush();
    }
    if (waiting.size === 0) return;
    const taken = waiting;
    waiting = new Map();
    clearTimeout(timer);
    timer = undefined;
    const done = writeAll(taken);
    writing = { taken, done };
    await done;
  }

  function schedule(): void {
    if (isClosed) return;
    timer ??= setTimeout(() => {
      timer = undefined;
      flush().catch(ignoreStoreError);
    }, GATHER_MS);
  }

  return {
    add: async (project, health) => {
      waiting.set(project, health);
      if (isFailing) return await flush();
      schedule();
    },
    supersede: async (project) => {
      if (writing?.taken.has(project) === true) await writing.done.catch(ignore);
      waiting.delete(project);
    },
    drop: (project) => {
      waiting.delete(project);
      writing?.taken.delete(project);
    },
    flush,
    close: async () => {
      isClosed = true;
      await flush().catch(ignoreStoreError);
      clearTimeout(timer);
    },
  };
}

function ignore(): void {
  // The caller that started the write gets the error.
}

function ignoreStoreError(error: unknown): void {
  if (!(error instanceof StoreError)) throw error;
}
