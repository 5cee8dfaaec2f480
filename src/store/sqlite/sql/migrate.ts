import { readFile } from 'node:fs/promises';
import { StoreError } from '../../../monitor/errors.ts';
import type { Connection } from '../connection.ts';
import { computeCauses, countSettledFailures } from './older-failures.ts';
import { createTransactions } from './transactions.ts';

/** "EVWT": marks an SQLite file as a store of evalwatch. */
export const APPLICATION_ID = 0x45565754;

/** Migrations in the order in which they are applied; the first makes schema version 1. A released one never changes. */
const MIGRATIONS = [
  '0001-init.sql',
  '0002-settlement.sql',
  '0003-transition-failed.sql',
  '0004-durations.sql',
  '0005-causes.sql',
  '0006-cause-ids.sql',
  '0007-same-tables.sql',
  '0008-notifications.sql',
  '0009-experiments.sql',
] as const;

/** What SQL cannot do of the migration to a schema version, run in its transaction. */
const AFTER_MIGRATION: ReadonlyMap<number, (db: Connection) => void> = new Map([
  [5, countSettledFailures],
  [6, computeCauses],
]);

/** The schema version that this program reads and writes. */
export const SCHEMA_VERSION: number = MIGRATIONS.length;

/** Reads the SQL of every migration, in order. */
export async function readMigrations(): Promise<readonly string[]> {
  return await Promise.all(
    MIGRATIONS.map((name) => readFile(new URL(`../migrations/${name}`, import.meta.url), 'utf8')),
  );
}

/**
 * Applies the migrations that the file lacks, each with its version in one transaction. A new file gets all of them in one: a
 * start that ends meanwhile leaves no store of an earlier version, but a file that counts as new.
 */
export function migrate(db: Connection, migrations: readonly string[]): void {
  // Tables are replaced by copies; no table of the current schema has foreign keys.
  db.pragma('foreign_keys = OFF');
  const run = createTransactions(db);
  const isNew = schemaVersion(db) === 0;
  for (const [index, sql] of migrations.entries()) {
    const version = index + 1;
    if (version <= schemaVersion(db)) continue;
    const place = { begins: !isNew || index === 0, ends: !isNew || version === migrations.length };
    run(place, () => {
      db.exec(sql);
      AFTER_MIGRATION.get(version)?.(db);
      db.pragma(`application_id = ${APPLICATION_ID}`);
      db.pragma(`user_version = ${version}`);
    });
  }
}

export function schemaVersion(db: Connection): number {
  return Number(db.pragma('user_version', { simple: true }));
}

/** @throws {StoreError} for a store that a newer version of this program has written */
export function assertNotNewer(version: number, path: string): void {
  if (version <= SCHEMA_VERSION) return;
  throw new StoreError(
    'other',
    `${path} has schema version ${version}, this evalwatch supports ${SCHEMA_VERSION}: run the newer evalwatch that wrote it`,
  );
}

/** @throws {StoreError} for a store that this version of the program has not upgraded yet */
export function assertNotOlder(version: number, path: string): void {
  if (version >= SCHEMA_VERSION) return;
  throw new StoreError(
    'other',
    `${path} has schema version ${version}, this evalwatch reads ${SCHEMA_VERSION}: start its daemon on the store once (of a backup, on a copy)`,
  );
}
