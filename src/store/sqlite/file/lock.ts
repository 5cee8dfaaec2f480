import { statSync } from 'node:fs';
import { hostname } from 'node:os';
import { StoreError } from '../../../monitor/errors.ts';
import { connect, type Connection } from '../connection.ts';
import { isSqliteError, toStoreError } from '../errors.ts';
import { createPrivately } from './store-file.ts';

/** Time for which SQLite waits, blocking, for another process, ms. */
export const BUSY_TIMEOUT_MS = 250;
/** Time for which the check for other names of the store waits, ms: a reading command ends within this time. */
const ALONE_TIMEOUT_MS = 2000;

interface Holder {
  readonly host: string;
  readonly pid: number;
}

/**
 * Locks the store for one daemon (docs/specification.md#one-daemon): a write transaction stays open on a second SQLite file,
 * and the kernel ends it with the process. Other processes read the holder from that file. Resolves to the function that
 * releases the lock.
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
 * Checks that no process has the store open under another name. A store with several names (hard links) has a separate log and
 * lock file for each name. SQLite's lock on the file itself is common to all: each connection shares it, so no process can
 * hold it exclusively while a daemon has the store open under any name.
 * @throws {StoreError} `busy`
 */
function assertAlone(storePath: string): void {
  const names = statSync(storePath, { throwIfNoEntry: false })?.nlink ?? 1;
  if (names < 2) return;
  const db = connect(storePath, { readonly: false, busyTimeoutMs: ALONE_TIMEOUT_MS });
  try {
    db.pragma('locking_mode = EXCLUSIVE');
    // The lock is taken with the first read, and released with the connection.
    db.pragma('user_version');
  } catch (error) {
    if (!isSqliteError(error, 'SQLITE_BUSY')) throw toStoreError(error, storePath);
    const message = `${storePath} is one of ${names} names (hard links) of a file that another process has open: end that process, or copy the store to another file`;
    throw new StoreError('busy', message, error);
  } finally {
    db.close();
  }
}

/** Writes the holder in one transaction, and keeps the next one open: other processes read only committed rows. */
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
  const holder = tryReadHolder(db);
  const who = holder === undefined ? 'another process' : `process ${holder.pid} on ${holder.host}`;
  return new StoreError('busy', `${storePath} is in use by ${who}`, error);
}

/** Returns the holder; undefined while it writes its row. */
function tryReadHolder(db: Connection): Holder | undefined {
  try {
    return readHolder(db);
  } catch {
    return undefined;
  }
}

function readHolder(db: Connection): Holder | undefined {
  return db.prepare<[], Holder>('SELECT host, pid FROM holder').get();
}
