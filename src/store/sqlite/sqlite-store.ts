import type { KnownRecord } from '../../domain/record.ts';
import type { Kind } from '../../domain/status.ts';
import { StoreError } from '../../monitor/errors.ts';
import type { Observer } from '../../monitor/events.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import type { KnownProject, ProjectSnapshot, Store } from '../../monitor/ports/store.ts';
import { toKnownRecord } from '../rows.ts';
import type { DatabasePaths } from './database.ts';
import { withStoreErrors } from './errors.ts';
import { createListings, type Listings } from './listings.ts';
import type { KnownRequest } from './sql/known.ts';
import { PART_ROWS } from './sql/poll-rows.ts';
import { createPolls } from './polls.ts';
import { PAGE_PROJECTS } from './sql/snapshot.ts';
import { fileSize, inspectStoreFile, prepareRealPath } from './file.ts';
import { startThread, type StoreThread } from './client.ts';
import { createWriteQueue, type WriteQueue } from './write-queue.ts';

export interface StoreOptions {
  /** Absolute path; missing directories are created. */
  readonly path: string;
  readonly clock: Clock;
  /** Receives `store.committed` and `store.commit_failed`. */
  readonly emit: Observer;
  /** Called with the real path when there was no store before. */
  readonly onCreated?: (path: string) => void;
  /** Starts the thread in which SQLite works. */
  readonly startThread?: (paths: DatabasePaths) => Promise<StoreThread>;
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
    const paths = { path: options.path, file };
    const thread = await (options.startThread ?? startThread)(paths);
    if (found === 'absent') options.onCreated?.(file);
    return createStore(file, thread, options);
  });
}

function createStore(
  file: string,
  thread: StoreThread,
  { clock, emit }: StoreOptions,
): SqliteStore {
  const listings = createListings();
  listings.update(thread.news);
  const queue = createWriteQueue({ writePiece, clock, emit });
  const polls = createPolls(queue, clock);
  let closing: Promise<void> | undefined;

  function assertOpen(): void {
    if (closing !== undefined) throw new StoreError('other', 'the store is closed');
  }

  const read: StoreThread['read'] = async (call) => {
    assertOpen();
    return await thread.read(call);
  };

  const write: WriteQueue['write'] = async (call) => {
    assertOpen();
    return await queue.write(call);
  };

  /** Snapshots show a commit before it is reported. */
  async function writePiece(...piece: Parameters<StoreThread['write']>) {
    const { results, news } = await thread.write(...piece);
    listings.update(news);
    return results;
  }

  /** Emits a failure as that of a commit: polls and reports of failures wait for these reads. */
  const readOrEmit: StoreThread['read'] = async (call) => {
    assertOpen();
    try {
      return await thread.read(call);
    } catch (error) {
      if (error instanceof StoreError) {
        emit({ type: 'store.commit_failed', reason: error.reason, error });
      }
      throw error;
    }
  };

  const files = watchFiles(clock, () => readOrEmit({ method: 'assertInPlace', args: [] }));

  /** Ends after the calls so far. What takes several of them is refused at the next one. */
  async function close(): Promise<void> {
    files.stop();
    await polls.close();
    await queue.close();
    await thread.close();
  }

  return {
    sqliteVersion: thread.sqliteVersion,
    isInPlace: files.isInPlace,
    projects: (...args) => read({ method: 'projects', args }),
    snapshot: async (project) => {
      const [backlog, projects] = await Promise.all([
        read({ method: 'backlog', args: [] }),
        readProjects(read, listings, project),
      ]);
      return polls.withNewestHealth({ projects, backlog });
    },
    statuses: (...args) => read({ method: 'statuses', args }),
    transitions: (...args) => read({ method: 'transitions', args }),
    failures: (...args) => read({ method: 'failures', args }),
    events: (...args) => read({ method: 'events', args }),
    moves: (...args) => read({ method: 'moves', args }),
    failureCounts: (...args) => read({ method: 'failureCounts', args }),
    durations: (...args) => read({ method: 'durations', args }),
    causes: (...args) => read({ method: 'causes', args }),
    configureProjects: async (ids, at) => {
      await write({ method: 'configureProjects', args: [ids, at] });
      polls.configure(ids);
    },
    loadHealth: async (...args) => {
      assertOpen();
      await polls.flush();
      return await readOrEmit({ method: 'loadHealth', args });
    },
    loadKnown: (...args) => loadKnown(readOrEmit, ...args),
    commitPoll: async (poll) => {
      assertOpen();
      return await polls.commit(poll);
    },
    pendingFailures: (...args) => readOrEmit({ method: 'pendingFailures', args }),
    settleFailure: (...args) => write({ method: 'settleFailure', args }),
    postponeFailure: (...args) => write({ method: 'postponeFailure', args }),
    prune: async (limits) => {
      let step = 0;
      for (;;) {
        // A close ends the pruning between two steps.
        if (closing !== undefined) return;
        const outcome = await queue.write({ method: 'prune', args: [step, limits] });
        if (outcome === 'done') return;
        if (outcome === 'next') step += 1;
      }
    },
    size: () =>
      withStoreErrors(file, async () => {
        const [database, wal] = await Promise.all([fileSize(file), fileSize(`${file}-wal`)]);
        return { database, wal };
      }),
    close: async () => {
      closing ??= close();
      await closing;
    },
  };
}

/** Reads the projects of a snapshot, or one, in pages, so that the main thread copies few at once. */
async function readProjects(
  read: StoreThread['read'],
  listings: Listings,
  only: string | undefined,
): Promise<readonly ProjectSnapshot[]> {
  const projects: ProjectSnapshot[] = [];
  for (let after = ''; ;) {
    const page = await read({ method: 'snapshotAfter', args: [after, only] });
    for (const row of page) projects.push({ ...row, listings: listings.of(row.project) });
    if (page.length < PAGE_PROJECTS) return projects;
    after = page.at(-1)?.project ?? '';
  }
}

/** Loads known records in pages, so that a large project takes the memory and the time of one page at once. */
async function loadKnown(
  read: StoreThread['read'],
  project: string,
  kinds: readonly Kind[],
  only?: ReadonlyMap<Kind, readonly string[]>,
): Promise<KnownProject> {
  const listings = new Map<Kind, { baselined: boolean; records: Map<string, KnownRecord> }>();
  let token: string | undefined;
  const unread = new Map(kinds.map((kind) => [kind, { after: '', ids: only?.get(kind) }]));
  do {
    const requests = Array.from(unread, ([kind, { after, ids }]): KnownRequest => {
      return { kind, from: ids === undefined ? { after } : { ids: ids.slice(0, PART_ROWS) } };
    });
    const page = await read({ method: 'known', args: [project, requests] });
    token ??= page.token;
    for (const { kind, baselined, rows } of page.listings) {
      const listing = listings.get(kind) ?? { baselined, records: new Map() };
      listings.set(kind, listing);
      for (const row of rows) listing.records.set(row[0], toKnownRecord(row));
      const ids = unread.get(kind)?.ids?.slice(PART_ROWS);
      const isLast = ids === undefined ? rows.length < PART_ROWS : ids.length === 0;
      if (isLast) unread.delete(kind);
      else unread.set(kind, { after: rows.at(-1)?.[0] ?? '', ids });
    }
  } while (unread.size > 0);
  return { token, listings };
}

/** Runs `check` at an interval, and keeps whether it last succeeded. */
function watchFiles(
  clock: Pick<Clock, 'every'>,
  check: () => Promise<void>,
): {
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

  const timer = clock.every(CHECK_EVERY_MS, () => void checkFiles()).unref();
  return { isInPlace: () => isInPlace, stop: () => timer.cancel() };
}
