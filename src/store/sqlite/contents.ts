import type { Connection } from './connection.ts';
import { assertIntact, toStoreError, withStoreErrors } from './errors.ts';
import { type Row, type StoreContents, type Table, TABLES } from '../contents.ts';
import { takeLock } from './file.ts';
import { findStore, openReadable } from './sqlite-reader.ts';

/**
 * Opens a store for copying, and locks it against daemons until it is closed.
 * @throws {StoreError} also if there is no store, or if it is locked, damaged, or of another schema version
 */
export async function openContents(path: string): Promise<StoreContents> {
  using opened = new DisposableStack();
  // Taken before the store is opened: under the lock no other process has it open.
  const release = await withStoreErrors(path, async () => takeLock(await findStore(path)));
  opened.defer(release);
  const { db, close } = await openReadable(path);
  opened.defer(close);
  await withStoreErrors(path, () => assertIntact(db, path));
  const number = db
    .prepare<[table: string], number>(
      'SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = ?), 0)',
    )
    .pluck();
  const last = (table: string) => number.get(table) ?? 0;
  const numbers = {
    transition: last('transition'),
    settlement: last('settlement'),
    finish: last('finish'),
  };
  const held = opened.move();
  return {
    rows: (table) => select(db, table, path),
    numbers,
    close: () => held.dispose(),
  };
}

function* select(db: Connection, table: Table, path: string): Generator<Row> {
  const from = table === 'settlement' ? 'settlement JOIN failure USING (transition_id)' : table;
  // Rows of projects that are being deleted stay behind.
  const where =
    table === 'receiver' ? '' : 'WHERE project_key NOT IN (SELECT project_key FROM waste)';
  const text = `SELECT ${table}.* FROM ${from} ${where} ORDER BY ${TABLES[table]}`;
  try {
    yield* db.prepare<[], Row>(text).iterate();
  } catch (error) {
    throw toStoreError(error, path);
  }
}
