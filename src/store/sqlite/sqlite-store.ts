import type { Kind } from '../../domain/status.ts';
import { StoreError } from '../../monitor/errors.ts';
import type { Observer } from '../../monitor/events.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import type { ListingSnapshot, Store } from '../../monitor/ports/store.ts';
import { withStoreErrors } from './errors.ts';
import { collectPages } from './sql/known.ts';
import { noteOpen } from './file/open-files.ts';
import { completeSnapshot } from './sql/snapshot.ts';
import { fileSize, inspectStoreFile, prepareRealPath } from './file/store-file.ts';
import { startThread, type StoreThread } from './thread/thread-client.ts';
import { createWriteQueue, type WriteQueue } from './thread/write-queue.ts';

export interface StoreOptions {
  /** Absolute path; missing directories are created. */
  readonly path: string;
  readonly clock: Clock;
  /** Receives `store.committed` and `store.commit_failed`. */
  readonly emit: Observer;
  /** Called with the real path when there was no store before. */
  readonly onCreated?: (path: string) => void;
}

/** Interval at which the files are compared with those that were opened, ms. Each commit compares them as well. */
const CHECK_EVERY_MS = 1000;

export interface SqliteStore extends Store {
  /** Version of SQLite, such as `3.54.0`. */
  readonly sqliteVersion: string;
  /** Whether the store's files were those that were opened, as of the last comparison, at most about a second ago. */
  isInPlace(): boolean;
}

/**
 * Opens the store for its one daemon, and creates it if there is none (docs/specification.md#one-daemon). SQLite works in
 * another thread: a call blocks the event loop only while up to a thousand rows are copied.
 * @throws {StoreError} `busy` if another process has it locked; also if the file is not a store of this or an older version,
 * which then does not change
 */
export async function openStore(options: StoreOptions): Promise<SqliteStore> {
  return await withStoreErrors(options.path, async () => {
    const file = await prepareRealPath(options.path);
    const found = await inspectStoreFile(file);
    using opened = new DisposableStack();
    opened.defer(noteOpen(file));
    const thread = await startThread({ path: options.path, file });
    if (found === 'absent') options.onCreated?.(file);
    const held = opened.move();
    return createStore(file, thread, options, () => held.dispose());
  });
}

function createStore(
  file: string,
  thread: StoreThread,
  { clock, emit }: StoreOptions,
  onClosed: () => void,
): SqliteStore {
  const listings = new Map<string, ReadonlyMap<Kind, ListingSnapshot>>();
  const queue = createWriteQueue({ thread, clock, emit });
  let closing: Promise<void> | undefined;

  function assertOpen(): void {
    if (closing !== undefined) throw new StoreError('other', `the store is closed (${file})`);
  }

  const read: StoreThread['read'] = async (call) => {
    assertOpen();
    return await thread.read(call);
  };

  /** Emits a failure as that of a commit: polls and reports of failures wait for these reads. */
  const readOrEmit: StoreThread['read'] = async (call) => {
    try {
      return await read(call);
    } catch (error) {
      if (error instanceof StoreError) {
        emit({ type: 'store.commit_failed', reason: error.reason, error });
      }
      throw error;
    }
  };

  const files = watchFiles(() => readOrEmit({ method: 'assertInPlace', args: [] }));

  const write: WriteQueue['write'] = async (call) => {
    assertOpen();
    return await queue.write(call);
  };

  async function close(): Promise<void> {
    files.stop();
    try {
      await queue.idle();
      await thread.close();
    } finally {
      onClosed();
    }
  }

  return {
    sqliteVersion: thread.sqliteVersion,
    isInPlace: files.isInPlace,
    projects: (...args) => read({ method: 'projects', args }),
    snapshot: async (...args) =>
      completeSnapshot(await read({ method: 'snapshot', args }), listings),
    statuses: (...args) => read({ method: 'statuses', args }),
    transitions: (...args) => read({ method: 'transitions', args }),
    failures: (...args) => read({ method: 'failures', args }),
    events: (...args) => read({ method: 'events', args }),
    moves: (...args) => read({ method: 'moves', args }),
    failureCounts: (...args) => read({ method: 'failureCounts', args }),
    durations: (...args) => read({ method: 'durations', args }),
    causes: (...args) => read({ method: 'causes', args }),
    configureProjects: (...args) => write({ method: 'configureProjects', args }),
    loadHealth: (...args) => readOrEmit({ method: 'loadHealth', args }),
    loadKnown: async (...args) =>
      collectPages(await readOrEmit({ method: 'loadKnown', args }), (more) =>
        readOrEmit({ method: 'loadMore', args: [more] }),
      ),
    commitPoll: async (poll) => {
      assertOpen();
      return await queue.commit(poll);
    },
    pendingFailures: (...args) => readOrEmit({ method: 'pendingFailures', args }),
    settleFailure: (...args) => write({ method: 'settleFailure', args }),
    postponeFailure: (...args) => write({ method: 'postponeFailure', args }),
    prune: async (limits) => {
      let step = 0;
      for (;;) {
        // A close ends the pruning between two steps.
        if (closing !== undefined) return;
        const outcome = await write({ method: 'prune', args: [step, limits] });
        if (outcome === 'done') return;
        if (outcome === 'next') step += 1;
      }
    },
    size: () =>
      withStoreErrors(file, async () => ({
        database: await fileSize(file),
        wal: await fileSize(`${file}-wal`),
      })),
    close: async () => {
      closing ??= close();
      await closing;
    },
  };
}

/** Runs `check` at an interval, and keeps whether it last succeeded. */
function watchFiles(check: () => Promise<void>): {
  readonly isInPlace: () => boolean;
  readonly stop: () => void;
} {
  let isInPlace = true;
  let isChecking = false;

  async function checkFiles(): Promise<void> {
    if (isChecking) return;
    isChecking = true;
    try {
      await check();
      isInPlace = true;
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      isInPlace = false;
    } finally {
      isChecking = false;
    }
  }

  const timer = setInterval(() => void checkFiles(), CHECK_EVERY_MS).unref();
  return { isInPlace: () => isInPlace, stop: () => clearInterval(timer) };
}
