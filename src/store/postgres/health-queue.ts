import type { PollHealth } from '../../monitor/ports/store.ts';
import { StoreError } from '../../monitor/errors.ts';

/** The outcome of a poll that changed nothing else. */
export interface WaitingHealth {
  readonly epoch: number;
  /** Of the project, if that is known: with another one it is another listing that has not changed. */
  readonly version: number | undefined;
  readonly health: PollHealth;
  readonly nextTickAt: number | undefined;
}

export interface HealthQueue {
  /** Resolves when it is kept to be written with the others; after a failure, when it is written. @throws {StoreError} */
  add(project: string, health: WaitingHealth): Promise<void>;
  /** What waits for this project is out of date; resolves when nothing of it is being written. */
  supersede(project: string): Promise<void>;
  /** What waits for this project, or is being written, is nobody's any more. */
  drop(project: string): void;
  /** Writes what waits now. @throws {StoreError} and then it waits on */
  flush(): Promise<void>;
  /** Writes it a last time, if that can be done. */
  close(): Promise<void>;
}

/** Health in the store is never older than this and a commit. */
const GATHER_MS = 1000;

/**
 * Gathers the outcomes of polls that changed nothing, the newest of each project, and writes them together: `write` gets
 * them and tells of its commit or of its failure.
 */
export function createHealthQueue(
  write: (waiting: ReadonlyMap<string, WaitingHealth>) => Promise<void>,
): HealthQueue {
  let waiting = new Map<string, WaitingHealth>();
  let writing:
    { readonly taken: Map<string, WaitingHealth>; readonly done: Promise<void> } | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isFailing = false;
  let closed = false;

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
    if (closed) return;
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
      closed = true;
      await flush().catch(ignoreStoreError);
      clearTimeout(timer);
    },
  };
}

function ignore(): void {
  // Whoever began it is told.
}

function ignoreStoreError(error: unknown): void {
  if (!(error instanceof StoreError)) throw error;
}
