import { randomBytes } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StoreError } from '../../monitor/errors.ts';
import { connect, type Connection } from './connection.ts';
import { isSqliteError } from './errors.ts';
import { migrate, schemaVersion } from './sql/migrate.ts';

/**
 * Returns a connection for reading that has the current schema: `db`, or an upgraded copy of a store of an earlier version.
 * The copy is in the directory for temporary files and has no name, so it disappears when it is closed or the process ends.
 * The store stays as it is.
 * @throws {StoreError} if there is no room for the copy
 */
export function inCurrentSchema(db: Connection, migrations: readonly string[]): Connection {
  if (schemaVersion(db) === migrations.length) return db;
  const path = join(tmpdir(), `evalwatch-${randomBytes(12).toString('hex')}.db`);
  try {
    // SQLite fills a file that is empty, and keeps who may read it.
    writeFileSync(path, '', { flag: 'wx', mode: 0o600 });
    db.prepare('VACUUM INTO ?').run(path);
    return openUpgraded(path, migrations);
  } catch (error) {
    if (!isDiskError(error)) throw error;
    throw new StoreError(
      'other',
      `the store has an earlier schema version, and no upgraded copy of it can be written to ${tmpdir()}: set TMPDIR to a directory with room for it`,
      error,
    );
  } finally {
    rmSync(path, { force: true });
  }
}

function openUpgraded(path: string, migrations: readonly string[]): Connection {
  const copy = connect(path, { readonly: false, busyTimeoutMs: 0 });
  try {
    // A journal would need the name.
    copy.pragma('journal_mode = MEMORY');
    migrate(copy, migrations);
    copy.pragma('query_only = ON');
    return copy;
  } catch (error) {
    copy.close();
    throw error;
  }
}

const DISK_ERRORS = ['SQLITE_CANTOPEN', 'SQLITE_FULL', 'SQLITE_IOERR'];

function isDiskError(error: unknown): boolean {
  return (
    (error instanceof Error && 'syscall' in error) ||
    DISK_ERRORS.some((code) => isSqliteError(error, code))
  );
}
