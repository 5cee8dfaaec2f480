import { readFileSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import Database from 'better-sqlite3';
import { StoreError } from '../monitor/errors.ts';
import type { StoreReader } from '../monitor/ports.ts';
import { connect, type Connection } from './connection.ts';
import { isSqliteError, isSystemError, withStoreErrors } from './errors.ts';
import { assertNotNewer, SCHEMA_VERSION, schemaVersion } from './migrate.ts';
import { createEventQuery } from './event-query.ts';
import { createMoveQuery } from './move-query.ts';
import { noteOpen } from './open-files.ts';
import { createRowQueries } from './row-queries.ts';
import { completeSnapshot, createSnapshotReader } from './snapshot.ts';
import { fileSize, inspectStoreFile } from './store-file.ts';

/** A command can wait longer than a daemon: the daemon may be closing, and holds the store while it does. */
const BUSY_TIMEOUT_MS = 5000;

/**
 * Opens the store for reading, beside a daemon or without one; never changes the file.
 * @throws {StoreError} also if there is none yet, or it is of another schema version
 */
export async function openReader({ path }: { readonly path: string }): Promise<StoreReader> {
  const { db, close } = await openReadable(path);
  try {
    // A damaged store may fail here, too.
    return await withStoreErrors(path, () => createReader(db, path, close));
  } catch (error) {
    close();
    throw error;
  }
}

/** A connection that reads a store and never changes it, for whoever needs more than rows. */
interface Readable {
  readonly db: Connection;
  readonly close: () => void;
}

/** @throws {StoreError} as {@link openReader} */
export async function openReadable(path: string): Promise<Readable> {
  return await withStoreErrors(path, async () => {
    const file = await findStore(path);
    using opened = new DisposableStack();
    opened.defer(noteOpen(file));
    const db = await connectReadable(file);
    opened.defer(() => db.close());
    assertNotNewer(schemaVersion(db), path);
    assertNotOlder(schemaVersion(db), path);
    const held = opened.move();
    return { db, close: () => held.dispose() };
  });
}

function createReader(db: Connection, path: string, close: () => void): StoreReader {
  const rows = createRowQueries(db);
  const events = createEventQuery(db);
  const snapshot = createSnapshotReader(db);
  const moves = createMoveQuery(db);
  return {
    projects: () => withStoreErrors(path, () => rows.projects()),
    snapshot: () => withStoreErrors(path, () => completeSnapshot(snapshot(new Set()), new Map())),
    statuses: (query) => withStoreErrors(path, () => rows.statuses(query)),
    transitions: (query) => withStoreErrors(path, () => rows.transitions(query)),
    failures: (query) => withStoreErrors(path, () => rows.failures(query)),
    events: (after, limit) => withStoreErrors(path, () => events(after, limit)),
    moves: (query) => withStoreErrors(path, () => moves(query)),
    close: () => withStoreErrors(path, close),
  };
}

async function findStore(path: string): Promise<string> {
  try {
    const file = await realpath(path);
    if ((await inspectStoreFile(file)) === 'store') return file;
  } catch (error) {
    if (!isSystemError(error, 'ENOENT')) throw error;
  }
  throw new StoreError(
    'other',
    `there is no store at ${path} yet: has the daemon run with this configuration?`,
  );
}

/** SQLite reads a store only beside its -wal and -shm files; where it cannot make them, a copy in memory needs none. */
async function connectReadable(file: string): Promise<Connection> {
  const db = connect(file, { readonly: true, busyTimeoutMs: BUSY_TIMEOUT_MS });
  try {
    schemaVersion(db);
    return db;
  } catch (error) {
    db.close();
    const unable =
      isSqliteError(error, 'SQLITE_CANTOPEN') || isSqliteError(error, 'SQLITE_READONLY');
    if (!unable || (await fileSize(`${file}-wal`)) > 0) throw error;
    return copyIntoMemory(file);
  }
}

function copyIntoMemory(file: string): Connection {
  const image = readFileSync(file);
  // The two bytes that say that it has a write-ahead log.
  image.fill(1, 18, 20);
  return new Database(image, { readonly: true });
}

function assertNotOlder(version: number, path: string): void {
  if (version >= SCHEMA_VERSION) return;
  throw new StoreError(
    'other',
    `${path} has schema version ${version}, this evalwatch reads ${SCHEMA_VERSION}: start the daemon, or run poll, once`,
  );
}
