import { readFile } from 'node:fs/promises';
import { StoreError } from '../../../monitor/errors.ts';
import type { Database, RunInTransaction, Statement } from '../database.ts';
import { computeCauses, countSettledFailures } from './older-failures.ts';

interface Migration {
  readonly file: string;
  readonly compatibleFrom: number;
  /** What SQL cannot do, run after the script in its transaction. */
  readonly after?: (run: RunInTransaction) => Promise<void>;
}

/**
 * Migrations in the order in which they are applied; the first makes schema version 1. A released one never changes. A
 * migration whose additions older programs can ignore keeps `compatibleFrom`, so that workers of both versions run side by
 * side. A migration that removes something names the schema version whose programs no longer need it, and comes a release
 * later than that.
 */
const MIGRATIONS: readonly Migration[] = [
  { file: '0001-init.sql', compatibleFrom: 1 },
  { file: '0002-transition-failed.sql', compatibleFrom: 1 },
  { file: '0003-durations.sql', compatibleFrom: 1 },
  { file: '0004-causes.sql', compatibleFrom: 1, after: countSettledFailures },
  { file: '0005-configuration.sql', compatibleFrom: 1 },
  { file: '0006-cause-ids.sql', compatibleFrom: 1, after: computeCauses },
  { file: '0007-token.sql', compatibleFrom: 7 },
  { file: '0008-notifications.sql', compatibleFrom: 7 },
  { file: '0009-experiments.sql', compatibleFrom: 9 },
];

/** The schema version that this program writes. */
const SCHEMA_VERSION: number = MIGRATIONS.length;

/** Key of the advisory lock, the same in every version: "EVWT". */
const LOCK = 0x45565754;

/** Limit of a statement of a migration. An index of a large store takes long, and other workers wait for the lock as long. */
const STATEMENT_MS = 24 * 60 * 60 * 1000;

const FIND: Statement = {
  name: 'find_schema',
  text: `SELECT to_regclass('evalwatch.schema_version') IS NOT NULL AS ours,
           EXISTS (SELECT FROM pg_namespace WHERE nspname = 'evalwatch') AS taken`,
};
const READ = 'SELECT version, compatible_from FROM evalwatch.schema_version';

interface SchemaVersion {
  readonly version: number;
  readonly compatible_from: number;
}

/**
 * Applies the migrations that the database lacks, in one transaction; of workers that start together one does it.
 * @throws {StoreError} when the schema is foreign, or of a version that this program does not support
 */
export async function migrate(database: Database): Promise<void> {
  if ((await findVersion(database)) >= SCHEMA_VERSION) return;
  const scripts = await readMigrations();
  await database.transaction(async (run) => {
    await run('SELECT pg_advisory_xact_lock($1)', [LOCK]);
    const [found] = await run<{ readonly ours: boolean }>(FIND.text);
    const [before] = found?.ours === true ? await run<SchemaVersion>(READ) : [];
    for (const [index, { sql, compatibleFrom, after }] of scripts.entries()) {
      const version = index + 1;
      if (version <= (before?.version ?? 0)) continue;
      await run(sql);
      await after?.(run);
      await run(
        `INSERT INTO evalwatch.schema_version (version, compatible_from) VALUES ($1, $2)
         ON CONFLICT (only_row) DO UPDATE SET version = $1, compatible_from = $2`,
        [version, compatibleFrom],
      );
    }
  }, STATEMENT_MS);
}

/** @throws {StoreError} as {@link migrate}, and if there is no store yet, or an older one */
export async function assertReadable(database: Database): Promise<void> {
  const version = await findVersion(database);
  if (version >= SCHEMA_VERSION) return;
  throw new StoreError(
    'other',
    version === 0
      ? 'there is no store in the database of store.postgres_url_file or _env yet: has a worker run with this configuration?'
      : `the database of store.postgres_url_file or _env has schema version ${version}, this evalwatch reads ${SCHEMA_VERSION}: start a worker of this version once`,
  );
}

/** Returns the schema version, 0 if there is no store. @throws {StoreError} if the schema is foreign or too new */
async function findVersion(database: Database): Promise<number> {
  const [found] = await database.query<{ readonly ours: boolean; readonly taken: boolean }>(FIND);
  if (found?.ours !== true) {
    if (found?.taken !== true) return 0;
    throw new StoreError(
      'other',
      'the database of store.postgres_url_file or _env has a schema "evalwatch" that is not a store of evalwatch: name another database',
    );
  }
  const [schema] = await database.query<SchemaVersion>({ name: 'read_schema', text: READ });
  if (schema === undefined)
    throw new StoreError(
      'corrupt',
      'the table evalwatch.schema_version is empty: restore a backup',
    );
  if (schema.compatible_from > SCHEMA_VERSION) {
    throw new StoreError(
      'other',
      `the database of store.postgres_url_file or _env has schema version ${schema.version}, this evalwatch supports ${SCHEMA_VERSION}: run the newer evalwatch that wrote it`,
    );
  }
  return schema.version;
}

async function readMigrations() {
  return await Promise.all(
    MIGRATIONS.map(async (migration) => {
      const sql = await readFile(
        new URL(`../migrations/${migration.file}`, import.meta.url),
        'utf8',
      );
      return { ...migration, sql };
    }),
  );
}
