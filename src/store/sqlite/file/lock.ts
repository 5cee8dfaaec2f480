import { statSync } from 'node:fs';
import { hostname } from 'node:os';
import { StoreError } from '../../../monitor/errors.ts';
import { connect, type Connection } from '../connection.ts';
import { isSqliteError, toStoreError } from '../errors.ts';
import { createPrivately } from './store-file.ts';

/** How long SQLite waits, blocking, for another process. */
export const BUSY_TIMEOUT_MS = 250;
/** Long enough for a reading command to end. */
const ALONE_TIMEOUT_MS = 2000;

interface Holder {
  readonly host: string;
  readonly pid: number;
}

/**
 * Takes the lock that makes a store serve one daemon at a time (docs/specification.md#one-daemon): a write transaction that
 * stays open on a second SQLite file, so that the kernel ends it with the process. Others can read the holder from that file.
 * Resolves to the function that releases the lock.
 * @throws {StoreError} `busy`, naming the holder
 */
export async function takeLock(storePath: string): Promise<() => void> {
  const path = `${storePath}.lock`;
  await createPrivately(path);
  const db = connect(path, { readonly: false, busyTimeoutMs: BUSY_TIMEOUT_MS });
  try {
    hold(db, { host: hostname(), pid: process.pid });
    assertAlone(storePath);
    return () => void db.close();
  } catch (error) {
    const refusal = explain(error, db, storePath);
    db.close();
    throw refusal;
  }
}

/**
 * A store with several names (hard links) has a log and a lock file under each of them, which do not know of each
 * other. SQLite's lock on the file itself does: every connection has a share of it, so that nobody can have it alone
 * while a daemon has the store open, under whatever name.
 */
function assertAlone(storePath: string): void {
  const names = statSync(storePath, { throwIfNoEntry: false })?.nlink ?? 1;
  if (names < 2) return;
  const db = connect(storePath, { readonly: false, busyTimeoutMs: ALONE_TIMEOUT_MS });
  try {
    db.pragma('locking_mode = EXCLUSIVE');
    // Taken with the first look at the file, and given back with the connection.
    db.pragma('user_version');
  } catch (error) {
    if (!isSqliteError(error, 'SQLITE_BUSY')) throw toStoreError(error, storePath);
    const message = `${storePath} is one of ${names} names (hard links) of a file that another process has open: end that process, or make a copy with a name of its own`;
    throw new StoreError('busy', message, error);
  } finally {
    db.close();
  }
}

/** Writes our name, and holds the lock once it finds it there: others can read only what is committed. */
function hold(db: Connection, self: Holder): void {
  db.exec('BEGIN IMMEDIATE');
  db.exec('CREATE TABLE IF NOT EXISTS holder (host TEXT NOT NULL, pid INTEGER NOT NULL) STRICT');
  const holder = readHolder(db);
  if (holder?.host === self.host && holder.pid === self.pid) return;
  db.exec('DELETE FROM holder');
  db.prepare('INSERT INTO holder (host, pid) VALUES (?, ?)').run(self.host, self.pid);
  db.exec('COMMIT');
  hold(db, self);
}

function explain(error: unknown, db: Connection, storePath: string): unknown {
  if (isSqliteError(error, 'SQLITE_NOTADB') || isSqliteError(error, 'SQLITE_CORRUPT')) {
    const message = `${storePath}.lock is damaged: delete it while no daemon runs`;
    return new StoreError('corrupt', message, error);
  }
  if (!isSqliteError(error, 'SQLITE_BUSY')) return error;
  const holder = whoHolds(db);
  const who = holder === undefined ? 'another process' : `process ${holder.pid} on ${holder.host}`;
  return new StoreError('busy', `${storePath} is in use by ${who}`, error);
}

/** Undefined while the holder writes its name. */
function whoHolds(db: Connection): Holder | undefined {
  try {
    return readHolder(db);
  } catch {
    return undefined;
  }
}

function readHolder(db: Connection): Holder | undefined {
  return db.prepare<[], Holder>('SELECT host, pid FROM holder').get();
}
