import { setImmediate } from 'node:timers/promises';
import type { Observer } from '../monitor/events.ts';
import type { Clock, Store } from '../monitor/ports.ts';
import { connect, disconnect, type Connection } from './connection.ts';
import { makeDurable } from './durability.ts';
import { assertIntact, withStoreErrors } from './errors.ts';
import { createFailures } from './failures.ts';
import { BUSY_TIMEOUT_MS, takeLock } from './lock.ts';
import { assertNotNewer, migrate, readMigrations, schemaVersion } from './migrate.ts';
import { createPollCommits } from './poll-commit.ts';
import { createProjects } from './projects.ts';
import { createPruning } from './pruning.ts';
import type { SnapshotCache } from './snapshot.ts';
import { createReader } from './sqlite-reader.ts';
import { createPrivately, fileSize, inspectStoreFile, prepareRealPath } from './store-file.ts';
import { createTransactions } from './transactions.ts';

export interface StoreOptions {
  /** Absolute; directories that are missing are made. */
  readonly path: string;
  readonly clock: Clock;
  /** Is told `store.committed` and `store.commit_failed`. */
  readonly emit: Observer;
  /** Called with the real path when there was no store before. */
  readonly onCreated?: (path: string) => void;
}

/**
 * Opens the store for its one daemon, and makes it if there is none (contract 4, Transitions).
 * @throws {StoreError} `busy` if another process holds it; also if the file is not a store of this or an older version,
 * and is then left as it is
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  return await withStoreErrors(options.path, async () => {
    const file = await prepareRealPath(options.path);
    const found = await inspectStoreFile(file);
    const migrations = await readMigrations();
    using opened = new DisposableStack();
    opened.defer(await takeLock(file));
    await createPrivately(file);
    const db = connect(file, { readonly: false, busyTimeoutMs: BUSY_TIMEOUT_MS });
    opened.defer(() => disconnect(db));
    assertNotNewer(schemaVersion(db), file);
    assertIntact(db, file);
    migrate(db, migrations);
    makeDurable(db);
    const store = createStore(db, file, options);
    if (found === 'absent') options.onCreated?.(file);
    const held = opened.move();
    return { ...store, close: () => withStoreErrors(file, () => close(db, held)) };
  });
}

function createStore(
  db: Connection,
  file: string,
  { clock, emit }: StoreOptions,
): Omit<Store, 'close'> {
  const { read, write } = createTransactions({ db, path: file, clock, emit });
  const cache: SnapshotCache = new Map();
  const projects = createProjects(db);
  const polls = createPollCommits(db);
  const failures = createFailures(db);
  const pruning = createPruning(db);

  return {
    ...createReader(db, file, cache),
    configureProjects: async (ids, at) => {
      // One that is removed, pruned and comes back is another one.
      cache.clear();
      write(() => projects.configure(ids, at));
    },
    loadHealth: async (project) => read(() => projects.health(project)),
    loadKnown: async (project, kinds) => read(() => polls.load(project, kinds)),
    commitPoll: async (commit) => {
      if (commit.listings.size > 0) cache.delete(commit.project);
      return write(() => polls.commit(commit));
    },
    pendingFailures: async (query) => read(() => failures.pending(query)),
    settleFailure: async (transitionId, settlement, at) =>
      write(() => failures.settle(transitionId, settlement, at)),
    postponeFailure: async (transitionId, tries) =>
      write(() => failures.postpone(transitionId, tries)),
    prune: async (before) => {
      for (const step of pruning) {
        while (db.open && write(() => step.run(before))) {
          // oxlint-disable-next-line no-await-in-loop -- others have their turn between the transactions
          await setImmediate();
        }
      }
    },
    size: () =>
      withStoreErrors(file, async () => ({
        database: await fileSize(file),
        wal: await fileSize(`${file}-wal`),
      })),
  };
}

function close(db: Connection, held: DisposableStack): void {
  if (held.disposed) return;
  try {
    db.pragma('wal_checkpoint(TRUNCATE)');
  } catch {
    // The log stays, and the next one to open the store reads it.
  }
  held.dispose();
}
