import type { Kind } from '../../domain/status.ts';
import { StoreError } from '../../monitor/errors.ts';
import type { Observer } from '../../monitor/events.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import type {
  ListingSnapshot,
  ProjectSnapshot,
  Store,
  StoreSnapshot,
} from '../../monitor/ports/store.ts';
import { createOpenWork } from '../open-work.ts';
import { withStoreErrors } from './errors.ts';
import { collectPages } from './sql/known.ts';
import { createPolls } from './polls.ts';
import { noteOpen } from './file/open-files.ts';
import { completeSnapshot } from './sql/snapshot.ts';
import { fileSize, inspectStoreFile, prepareRealPath } from './file/store-file.ts';
import { startThread, type StoreThread } from './thread/thread-client.ts';
import { createWriteQueue } from './thread/write-queue.ts';

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
  const openWork = createOpenWork();
  const { guarded } = openWork;
  const queue = createWriteQueue({ thread, clock, emit });
  const polls = createPolls(queue);
  /** Settles with the last snapshot that was asked for. */
  let lastSnapshot = Promise.resolve();
  let closing: Promise<void> | undefined;

  /** Emits a failure as that of a commit: polls and reports of failures wait for these reads. */
  const readOrEmit: StoreThread['read'] = async (call) => {
    try {
      return await thread.read(call);
    } catch (error) {
      if (error instanceof StoreError) {
        emit({ type: 'store.commit_failed', reason: error.reason, error });
      }
      throw error;
    }
  };

  async function readSnapshot(): Promise<StoreSnapshot> {
    const projects: ProjectSnapshot[] = [];
    let page = await thread.read({ method: 'snapshot', args: [] });
    for (;;) {
      projects.push(...polls.withNewestHealth(completeSnapshot(page, listings)).projects);
      if (page.more === undefined) return { projects, backlog: page.backlog };
      page = await thread.read({ method: 'moreOfSnapshot', args: [page.more] });
    }
  }

  const files = watchFiles(() => readOrEmit({ method: 'assertInPlace', args: [] }));

  async function close(): Promise<void> {
    files.stop();
    openWork.refuse();
    try {
      await openWork.close();
      await polls.close();
      await thread.close();
    } finally {
      onClosed();
    }
  }

  return {
    sqliteVersion: thread.sqliteVersion,
    isInPlace: files.isInPlace,
    projects: guarded((...args) => thread.read({ method: 'projects', args })),
    snapshot: guarded(async () => {
      // One after the other: a late page of an older one would undo what a newer one has read.
      const snapshot = lastSnapshot.then(readSnapshot);
      lastSnapshot = settled(snapshot);
      return await snapshot;
    }),
    statuses: guarded((...args) => thread.read({ method: 'statuses', args })),
    transitions: guarded((...args) => thread.read({ method: 'transitions', args })),
    failures: guarded((...args) => thread.read({ method: 'failures', args })),
    events: guarded((...args) => thread.read({ method: 'events', args })),
    moves: guarded((...args) => thread.read({ method: 'moves', args })),
    failureCounts: guarded((...args) => thread.read({ method: 'failureCounts', args })),
    durations: guarded((...args) => thread.read({ method: 'durations', args })),
    causes: guarded((...args) => thread.read({ method: 'causes', args })),
    configureProjects: guarded(async (ids, at) => {
      await queue.write({ method: 'configureProjects', args: [ids, at] });
      polls.configure(ids);
    }),
    loadHealth: guarded(async (...args) => {
      await polls.flush();
      return await readOrEmit({ method: 'loadHealth', args });
    }),
    loadKnown: guarded(async (...args) =>
      collectPages(await readOrEmit({ method: 'loadKnown', args }), (more) =>
        readOrEmit({ method: 'loadMore', args: [more] }),
      ),
    ),
    commitPoll: guarded(polls.commit),
    pendingFailures: guarded((...args) => readOrEmit({ method: 'pendingFailures', args })),
    settleFailure: guarded((...args) => queue.write({ method: 'settleFailure', args })),
    postponeFailure: guarded((...args) => queue.write({ method: 'postponeFailure', args })),
    prune: guarded(async (limits) => {
      let step = 0;
      for (;;) {
        // A close ends the pruning between two steps.
        if (openWork.isRefused()) return;
        const outcome = await queue.write({ method: 'prune', args: [step, limits] });
        if (outcome === 'done') return;
        if (outcome === 'next') step += 1;
      }
    }),
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

/** Resolves when the promise settles, and keeps no value. */
async function settled(promise: Promise<unknown>): Promise<void> {
  await promise.catch(() => {});
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
