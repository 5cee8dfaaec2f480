import type { Kind } from '../../domain/status.ts';
import { StoreError } from '../../monitor/errors.ts';
import type { Observer } from '../../monitor/events.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import type { CommittedTransition, ListingSnapshot, Store } from '../../monitor/ports/store.ts';
import type { Reads, WriteCall, Writes } from './database.ts';
import { withStoreErrors } from './errors.ts';
import { collectPages } from './sql/known-pages.ts';
import { noteOpen } from './file/open-files.ts';
import { countRows, toParts } from './sql/poll-rows.ts';
import { completeSnapshot } from './sql/snapshot.ts';
import { fileSize, inspectStoreFile, prepareRealPath } from './file/store-file.ts';
import { startThread, type StoreThread } from './thread/thread-client.ts';
import { createWriteQueue } from './thread/write-queue.ts';

export interface StoreOptions {
  /** Absolute; directories that are missing are made. */
  readonly path: string;
  readonly clock: Clock;
  /** Is told `store.committed` and `store.commit_failed`. */
  readonly emit: Observer;
  /** Called with the real path when there was no store before. */
  readonly onCreated?: (path: string) => void;
}

/** How often the files are compared with those that were opened, where no commit does. */
const LOOK_EVERY_MS = 1000;

export interface SqliteStore extends Store {
  /** Such as `3.54.0`. */
  readonly sqliteVersion: string;
  /** Whether the store's files were those that were opened when they were last compared, within a second. */
  isInPlace(): boolean;
}

/**
 * Opens the store for its one daemon, and creates it if there is none (docs/specification.md#one-daemon). SQLite works in a
 * thread of its own: no call blocks the event loop for longer than it takes to copy a thousand rows.
 * @throws {StoreError} `busy` if another process holds it; also if the file is not a store of this or an older version,
 * and is then left as it is
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
  let isInPlace = true;
  let isLooking = false;
  const timer = setInterval(() => void look(), LOOK_EVERY_MS).unref();

  function assertOpen(): void {
    if (closing !== undefined) throw new StoreError('other', `the store is closed (${file})`);
  }

  async function read<Name extends keyof Reads>(
    name: Name,
    ...args: Parameters<Reads[Name]>
  ): Promise<ReturnType<Reads[Name]>> {
    assertOpen();
    return await thread.ask({ read: name, args });
  }

  async function readTelling<Name extends keyof Reads>(
    name: Name,
    ...args: Parameters<Reads[Name]>
  ): Promise<ReturnType<Reads[Name]>> {
    try {
      return await read(name, ...args);
    } catch (error) {
      if (error instanceof StoreError) {
        emit({ type: 'store.commit_failed', reason: error.reason, error });
      }
      throw error;
    }
  }

  async function look(): Promise<void> {
    if (isLooking) return;
    isLooking = true;
    try {
      await readTelling('assertInPlace');
      isInPlace = true;
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      isInPlace = false;
    } finally {
      isLooking = false;
    }
  }

  async function write<Name extends keyof Writes>(
    method: Name,
    ...args: Parameters<Writes[Name]>
  ): Promise<ReturnType<Writes[Name]> | undefined> {
    assertOpen();
    const [result] = await queue.write<ReturnType<Writes[Name]>>(() => [{ method, args }], 0);
    return result;
  }

  async function close(): Promise<void> {
    clearInterval(timer);
    try {
      await queue.idle();
      await thread.close();
    } finally {
      onClosed();
    }
  }

  return {
    sqliteVersion: thread.sqliteVersion,
    isInPlace: () => isInPlace,
    projects: () => read('projects'),
    snapshot: async () => completeSnapshot(await read('snapshot'), listings),
    statuses: (query) => read('statuses', query),
    transitions: (query) => read('transitions', query),
    failures: (query) => read('failures', query),
    events: (after, limit) => read('events', after, limit),
    moves: (query) => read('moves', query),
    failureCounts: (query) => read('failureCounts', query),
    configureProjects: async (ids, at) => write('configureProjects', ids, at),
    loadHealth: (project) => readTelling('loadHealth', project),
    loadKnown: async (...args) =>
      collectPages(await readTelling('loadKnown', ...args), (more) =>
        readTelling('loadMore', more),
      ),
    commitPoll: async (poll) => {
      assertOpen();
      const calls = () =>
        Iterator.from(toParts(poll)).map((part, index): WriteCall => ({
          method: index === 0 ? 'commitPoll' : 'commitMore',
          args: [part],
        }));
      const results = await queue.write<readonly CommittedTransition[] | undefined>(
        calls,
        countRows(poll),
      );
      return results.includes(undefined) ? undefined : results.flatMap((part) => part ?? []);
    },
    pendingFailures: (query) => readTelling('pendingFailures', query),
    settleFailure: async (transitionId, settlement, at) =>
      write('settleFailure', transitionId, settlement, at),
    postponeFailure: async (transitionId, tries) => write('postponeFailure', transitionId, tries),
    prune: async (before) => {
      let step = 0;
      for (;;) {
        // A close ends it where it is.
        if (closing !== undefined) return;
        const outcome = await write('prune', step, before);
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
