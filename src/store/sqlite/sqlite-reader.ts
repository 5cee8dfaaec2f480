import { readFileSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import Database from 'better-sqlite3';
import { StoreError } from '../../monitor/errors.ts';
import type { StoreReader } from '../../monitor/ports/store.ts';
import { connect, distrust, type Connection } from './connection.ts';
import { isSqliteError, isSystemError, withStoreErrors } from './errors.ts';
import { assertNotNewer, readMigrations, SCHEMA_VERSION, schemaVersion } from './sql/migrate.ts';
import { createCauseQuery } from './sql/cause-query.ts';
import { createDurationQuery } from './sql/duration-query.ts';
import { createEventQuery } from './sql/event-query.ts';
import { createFailureCounts } from './sql/failure-counts.ts';
import { createMoveQuery } from './sql/move-query.ts';
import { noteOpen } from './file/open-files.ts';
import { createRowQueries } from './sql/row-queries.ts';
import { rememberFiles } from './file/same-files.ts';
import { inCurrentSchema } from './upgraded-copy.ts';
import { assertOwnSchema } from './sql/schema.ts';
import { createSnapshotReader } from './sql/snapshot.ts';
import { fileSize, inspectStoreFile } from './file/store-file.ts';

/** Time for which SQLite waits for another process, ms. Longer than a daemon waits: a closing daemon locks the store. */
const BUSY_TIMEOUT_MS = 5000;

export interface ReaderOptions {
  readonly path: string;
  /** Called with the version of an earlier schema: what the reader returns is as of now, from an upgraded copy. */
  readonly onEarlierSchema?: ((version: number) => void) | undefined;
}

/**
 * Opens the store for reading, beside a daemon or without one. Never changes the file.
 * @throws {StoreError} also if there is no store yet, its schema is newer or was changed, or there is no room to copy an older one
 */
export async function openReader({ path, onEarlierSchema }: ReaderOptions): Promise<StoreReader> {
  using opened = new DisposableStack();
  const { db, assertInPlace, version, close } = await openReadable(path);
  opened.defer(close);
  if (version < SCHEMA_VERSION) onEarlierSchema?.(version);
  const migrations = await readMigrations();
  const current = await withStoreErrors(path, () => inCurrentSchema(db, migrations));
  opened.defer(() => current.close());
  // Preparing the statements fails if the store is damaged.
  const reader = await withStoreErrors(path, () => createReader(current, path, assertInPlace));
  const held = opened.move();
  return { ...reader, close: () => withStoreErrors(path, () => held.dispose()) };
}

/** A connection that only reads a store, for commands that need more than rows. */
interface Readable {
  readonly db: Connection;
  /** @throws {StoreError} `replaced` if the path now leads to another file, or to none */
  readonly assertInPlace: () => void;
  /** Version of its schema, at most {@link SCHEMA_VERSION}. */
  readonly version: number;
  readonly close: () => void;
}

/** Opens a store with a schema that only evalwatch has made, of this version or an earlier one. @throws {StoreError} */
export async function openReadable(path: string): Promise<Readable> {
  const readable = await openUnchecked(path);
  try {
    const migrations = await readMigrations();
    await withStoreErrors(path, () => assertOwnSchema(readable.db, migrations, path));
    return readable;
  } catch (error) {
    readable.close();
    throw error;
  }
}

/** Opens a store without checking for foreign objects in its schema. @throws {StoreError} */
export async function openUnchecked(path: string): Promise<Readable> {
  return await withStoreErrors(path, async () => {
    const file = await findStore(path);
    using opened = new DisposableStack();
    opened.defer(noteOpen(file));
    const db = await connectReadable(file);
    opened.defer(() => db.close());
    const version = schemaVersion(db);
    assertNotNewer(version, path);
    const held = opened.move();
    return { db, assertInPlace: rememberFiles([path]), version, close: () => held.dispose() };
  });
}

function createReader(
  db: Connection,
  path: string,
  assertInPlace: () => void,
): Omit<StoreReader, 'close'> {
  const rows = createRowQueries(db);
  const events = createEventQuery(db);
  const snapshot = createSnapshotReader(db);
  const moves = createMoveQuery(db);
  const failureCounts = createFailureCounts(db);
  const durations = createDurationQuery(db);
  const causes = createCauseQuery(db);
  const read = <Result>(work: () => Result) =>
    withStoreErrors(path, () => {
      if (!db.open) throw new StoreError('other', `the store is closed (${path})`);
      // Otherwise a command that reads repeatedly would go on showing a store that was replaced.
      assertInPlace();
      return work();
    });
  return {
    projects: () => read(() => rows.projects()),
    snapshot: (project) => read(() => snapshot(project)),
    statuses: (query) => read(() => rows.statuses(query)),
    transitions: (query) => read(() => rows.transitions(query)),
    failures: (query) => read(() => rows.failures(query)),
    events: (after, limit) => read(() => events(after, limit)),
    moves: (query) => read(() => moves(query)),
    failureCounts: (query) => read(() => failureCounts(query)),
    durations: (...args) => read(() => durations(...args)),
    causes: (query) => read(() => causes(query)),
  };
}

/** Returns the real path of a store. @throws {StoreError} if there is none, or the file is something else */
export async function findStore(path: string): Promise<string> {
  try {
    const file = await realpath(path);
    if ((await inspectStoreFile(file)) === 'store') return file;
  } catch (error) {
    if (!isSystemError(error, 'ENOENT')) throw error;
  }
  throw new StoreError(
    'other',
    `there is no store at ${path}: the daemon creates it at its first start`,
  );
}

/** Largest file that Node reads as a whole. */
const MAX_COPY_BYTES = 2 ** 31 - 1;

/** SQLite needs -wal and -shm files beside a store. Where it cannot create them, a copy in memory needs none. */
async function connectReadable(file: string): Promise<Connection> {
  const db = connect(file, { readonly: true, busyTimeoutMs: BUSY_TIMEOUT_MS });
  try {
    schemaVersion(db);
    return db;
  } catch (error) {
    db.close();
    const unable =
      isSqliteError(error, 'SQLITE_CANTOPEN') || isSqliteError(error, 'SQLITE_READONLY');
    if (!unable) throw error;
    const hasCommits = (await fileSize(`${file}-wal`)) > 0;
    if (!hasCommits && (await fileSize(file)) <= MAX_COPY_BYTES) return copyIntoMemory(file);
    throw new StoreError(
      'io',
      `${file} has ${hasCommits ? `commits in ${file}-wal` : 'more than 2 GiB'}, so SQLite reads it only where it can write: ` +
        `run the command as a user who can write in that directory, or copy ${hasCommits ? 'both files' : 'it'} to another one and read the copy`,
      error,
    );
  }
}

function copyIntoMemory(file: string): Connection {
  const image = readFileSync(file);
  // These two bytes say whether the store has a write-ahead log.
  image.fill(1, 18, 20);
  return distrust(new Database(image, { readonly: true }));
}
