import { StoreError } from '../monitor/errors.ts';
import type { Clock, Timer } from '../monitor/ports/clock.ts';

/** Gathers the health of polls that changed nothing (docs/specification.md#commits). */
export interface HealthQueue<Health> {
  /**
   * Resolves when the health waits to be written with that of other projects. After a failed write, and while writes take
   * longer than their interval, resolves when it is written. If it rejects, this health is dropped.
   * @throws {StoreError}
   */
  add(project: string, health: Health): Promise<void>;
  /**
   * Makes a commit that has newer health of this project, when none of it is being written. The waiting health is dropped; if
   * the commit rejects, it goes on waiting.
   */
  supersede<Result>(project: string, commit: () => Promise<Result>): Promise<Result>;
  /** Drops the health of this project that waits or is being written: the project has no owner here any more. */
  drop(project: string): void;
  /** Writes all waiting health. @throws {StoreError} and the health goes on waiting */
  flush(): Promise<void>;
  /** Writes all waiting health one last time. Ignores a failure of the store. */
  close(): Promise<void>;
}

/** Time for which health waits for that of other projects, ms. Stored health is older by at most this and a commit. */
const GATHER_MS = 1000;

/**
 * Gathers the health of polls that changed nothing, the newest of each project, and has `write` write it together; `write`
 * emits its commit or its failure.
 */
export function createHealthQueue<Health>(
  write: (waiting: ReadonlyMap<string, Health>) => Promise<void>,
  clock: Pick<Clock, 'timeout'>,
): HealthQueue<Health> {
  let waiting = new Map<string, Health>();
  /** Health that waited before a commit that is under way. Written meanwhile, it would replace that of the commit. */
  const superseded = new Map<string, Health>();
  let writing: { readonly taken: Map<string, Health>; readonly done: Promise<void> } | undefined;
  /** The flush after the write that is under way. */
  let following: Promise<void> | undefined;
  let timer: Timer | undefined;
  let isFailing = false;
  let isClosed = false;

  async function writeAll(taken: ReadonlyMap<string, Health>): Promise<void> {
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
      following ??= flushAfter(writing.done);
      return await following;
    }
    if (waiting.size === 0) return;
    const taken = waiting;
    waiting = new Map();
    timer?.cancel();
    timer = undefined;
    const done = writeAll(taken);
    writing = { taken, done };
    await done;
  }

  async function flushAfter(done: Promise<void>): Promise<void> {
    await done.catch(ignore);
    following = undefined;
    await flush();
  }

  function schedule(): void {
    if (isClosed) return;
    timer ??= clock.timeout(GATHER_MS, () => {
      timer = undefined;
      flush().catch(ignoreStoreError);
    });
  }

  /** Writes this health at once. If that fails, what waited before goes on waiting in its place. */
  async function writeAtOnce(project: string, health: Health, before: Health | undefined) {
    try {
      await flush();
    } catch (error) {
      if (waiting.get(project) === health) {
        if (before === undefined) waiting.delete(project);
        else waiting.set(project, before);
      }
      throw error;
    }
  }

  return {
    add: async (project, health) => {
      const before = waiting.get(project) ?? writing?.taken.get(project);
      waiting.set(project, health);
      if (isFailing || following !== undefined) await writeAtOnce(project, health, before);
      else schedule();
    },
    supersede: async (project, commit) => {
      if (writing?.taken.has(project) === true) await writing.done.catch(ignore);
      const before = waiting.get(project);
      if (before === undefined) return await commit();
      waiting.delete(project);
      superseded.set(project, before);
      try {
        return await commit();
      } catch (error) {
        if (superseded.get(project) === before && !waiting.has(project)) {
          waiting.set(project, before);
          schedule();
        }
        throw error;
      } finally {
        superseded.delete(project);
      }
    },
    drop: (project) => {
      waiting.delete(project);
      superseded.delete(project);
      writing?.taken.delete(project);
    },
    flush,
    close: async () => {
      isClosed = true;
      await flush().catch(ignoreStoreError);
      timer?.cancel();
    },
  };
}

function ignore(): void {
  // The caller that started the write gets the error.
}

function ignoreStoreError(error: unknown): void {
  if (!(error instanceof StoreError)) throw error;
}
