import { hostname } from 'node:os';
import { StoreError } from '../../../monitor/errors.ts';
import { connect, type Connection } from '../connection.ts';
import { isSqliteError } from '../errors.ts';
import { createPrivately, foreign } from './store-file.ts';

/** Time for which SQLite waits, blocking, for another process, ms. */
export const BUSY_TIMEOUT_MS = 250;
/** The one table of a lock file, as SQLite stores its text. */
const HOLDER_TABLE = 'CREATE TABLE holder (host TEXT NOT NULL, pid INTEGER NOT NULL) STRICT';

interface Holder {
  readonly host: string;
  readonly pid: number;
}

/**
 * Locks the store for one daemon (docs/specification.md#one-daemon): a write transaction stays open on a second SQLite file,
 * and the kernel ends it with the process. Other processes read the holder from that file. Resolves to the function that
 * releases the lock. The caller has inspected the store and the files beside it.
 * @throws {StoreError} `busy`, naming the holder; also if the file is not such a lock
 */
export async function takeLock(storePath: string): Promise<() => void> {
  const path = `${storePath}.lock`;
  await createPrivately(path);
  const db = connect(path, { readonly: false, busyTimeoutMs: BUSY_TIMEOUT_MS });
  try {
    hold(db, path, { host: hostname(), pid: process.pid });
    return () => void db.close();
  } catch (error) {
    const refusal = explain(error, db, storePath);
    db.close();
    throw refusal;
  }
}

/** Writes the holder in one transaction, and keeps the next one open: other processes read only committed rows. */
function hold(db: Connection, path: string, self: Holder): void {
  db.exec('BEGIN IMMEDIATE');
  const found = tables(db);
  if (found.length === 0) db.exec(HOLDER_TABLE);
  else if (!isOwn(found)) throw foreign(path, 'is the database of another program');
  const holder = readHolder(db);
  if (holder?.host === self.host && holder.pid === self.pid) return;
  db.exec('DELETE FROM holder');
  db.prepare('INSERT INTO holder (host, pid) VALUES (?, ?)').run(self.host, self.pid);
  db.exec('COMMIT');
  hold(db, path, self);
}

function explain(error: unknown, db: Connection, storePath: string): unknown {
  if (isSqliteError(error, 'SQLITE_NOTADB') || isSqliteError(error, 'SQLITE_CORRUPT')) {
    const message = `${storePath}.lock is damaged: delete it while no daemon runs`;
    return new StoreError('corrupt', message, error);
  }
  if (!isSqliteError(error, 'SQLITE_BUSY')) return error;
  const holder = tryReadHolder(db);
  const who =
    holder === undefined
      ? 'another process, or its file system has no file locks (then put it on a local disk)'
      : `process ${holder.pid} on ${holder.host}`;
  return new StoreError('busy', `${storePath} is in use by ${who}`, error);
}

/** Returns the texts of everything in the schema. A trigger or a view would run foreign SQL. */
function tables(db: Connection): readonly (string | null)[] {
  return db.prepare<[], string | null>('SELECT sql FROM sqlite_schema').pluck().all();
}

function isOwn(found: readonly (string | null)[]): boolean {
  return found.length === 1 && found[0] === HOLDER_TABLE;
}

/** Returns the holder; undefined while it writes its row, or if another program has the file. */
function tryReadHolder(db: Connection): Holder | undefined {
  try {
    return isOwn(tables(db)) ? readHolder(db) : undefined;
  } catch {
    return undefined;
  }
}

function readHolder(db: Connection): Holder | undefined {
  return db.prepare<[], Holder>('SELECT host, pid FROM holder').get();
}
