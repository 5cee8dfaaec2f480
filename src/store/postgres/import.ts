import { createHash } from 'node:crypto';
import { cleanUnicode } from '../../domain/visible.ts';
import { StoreError } from '../../monitor/errors.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import { type Row, type StoreContents, type Table, TABLE_NAMES } from '../contents.ts';
import { PostgresDatabase, type RunInTransaction } from './database.ts';
import { migrate } from './sql/migrate.ts';
import { readUrl } from './url.ts';

interface ImportOptions {
  readonly clock: Clock;
  /** Connection string of the database. */
  readonly url: string;
  readonly source: StoreContents;
  /** Receives the number of rows written so far. */
  readonly onProgress?: (rows: number) => void;
}

interface Imported {
  /** Whether the same source was imported before; then nothing was done now. */
  readonly before: boolean;
  /** Number of imported rows. */
  readonly rows: Counts;
}

type Counts = Readonly<
  Record<
    'projects' | 'prompts' | 'datasets' | 'transitions' | 'failures' | 'pending_failures',
    number
  >
>;

const MAX_BATCH = 2000;
const TIMEOUT_MS = 60_000;

/**
 * Copies a store into the empty database of `url` in one transaction, so that a killed import leaves nothing. A hash of the
 * copied rows stays as a comment of the schema, by which a repetition recognises its own work.
 * @throws {StoreError} also if the database has other content, or a worker uses it
 */
export async function importStore(options: ImportOptions): Promise<Imported> {
  const { url, source, clock, onProgress = () => {} } = options;
  const database = new PostgresDatabase({
    settings: await readUrl(url),
    connections: 1,
    timeoutMs: TIMEOUT_MS,
    clock,
  });
  try {
    await migrate(database);
    return await database.transaction(async (run) => {
      // Other writers wait for the end of the transaction.
      await run('LOCK TABLE evalwatch.project, evalwatch.worker IN ACCESS EXCLUSIVE MODE');
      const [found] = await run<FoundRow>(FIND);
      if (found?.filled === true) {
        const { mark, rows } = await readAll(source);
        if (found.mark === mark) return { before: true, rows };
        throw new StoreError(
          'other',
          'the database of store.postgres_url_file or _env is not empty: name another one, or drop its schema evalwatch',
        );
      }
      if (found?.used === true) {
        throw new StoreError(
          'busy',
          'a worker uses the database of store.postgres_url_file or _env: stop all of them before',
        );
      }
      let written = 0;
      const { mark, rows } = await readAll(source, async (table, batch) => {
        await insert(run, table, batch);
        onProgress((written += batch.length));
      });
      const { transition, settlement, finish } = source.numbers;
      await run(SET_NUMBERS, [transition, settlement, finish]);
      await run(`COMMENT ON SCHEMA evalwatch IS '${mark}'`);
      return { before: false, rows };
    });
  } finally {
    await database.close();
  }
}

const FIND = `SELECT ${TABLE_NAMES.map((table) => `EXISTS (SELECT FROM evalwatch.${table})`).join(' OR ')} AS filled,
    EXISTS (SELECT FROM evalwatch.worker WHERE expires_at > now()) AS used,
    obj_description('evalwatch'::regnamespace, 'pg_namespace') AS mark`;

interface FoundRow {
  readonly filled: boolean;
  readonly used: boolean;
  readonly mark: string | null;
}

/** Reads the source, counts its rows, and returns the mark of a database with this content. */
async function readAll(
  source: StoreContents,
  write: (table: Table, rows: readonly Row[]) => Promise<void> = async () => {},
): Promise<{ readonly mark: string; readonly rows: Counts }> {
  const hash = createHash('sha256');
  const count = {
    projects: 0,
    prompts: 0,
    datasets: 0,
    transitions: 0,
    failures: 0,
    pending_failures: 0,
  };
  for (const table of TABLE_NAMES) {
    for (const batch of batches(source.rows(table))) {
      for (const row of batch) {
        hash.update(JSON.stringify([table, row]));
        if (table === 'project') count.projects += 1;
        if (table === 'record') count[row['kind'] === 'prompt' ? 'prompts' : 'datasets'] += 1;
        if (table === 'transition') count.transitions += 1;
        if (table === 'failure') count.failures += 1;
        if (table === 'failure' && row['settled_at'] === null) count.pending_failures += 1;
      }
      await write(table, batch);
    }
  }
  const { transition, settlement, finish } = source.numbers;
  hash.update(JSON.stringify([transition, settlement, finish]));
  return { mark: `moved here: ${hash.digest('hex')}`, rows: count };
}

/** Writes rows of a table. The database converts each value to the type of its column. */
async function insert(run: RunInTransaction, table: Table, rows: readonly Row[]): Promise<void> {
  const stored = rows.map((row) => toStored(table, row));
  const columns = Object.keys(stored[0] ?? {}).join(', ');
  await run(
    `INSERT INTO evalwatch.${table} (${columns})
     SELECT ${columns} FROM json_populate_recordset(NULL::evalwatch.${table}, $1)`,
    [JSON.stringify(stored)],
  );
}

/** Replaces what PostgreSQL cannot hold. Each project gets a token of this database. */
function toStored(table: Table, row: Row): Readonly<Record<string, unknown>> {
  const { token: _, ...clean } = Object.fromEntries(
    Object.entries(row).map(([column, value]) => {
      return [column, typeof value === 'string' ? cleanUnicode(value) : value];
    }),
  );
  if (table !== 'project') return clean;
  const { prompts, datasets } = row;
  return { ...clean, prompts: JSON.parse(String(prompts)), datasets: JSON.parse(String(datasets)) };
}

/** Lets later rows go on with the numbers of the source. */
const SET_NUMBERS = `SELECT
  setval('evalwatch.transition_transition_id_seq', greatest($1::bigint, 1), $1 > 0),
  setval('evalwatch.settlement_settlement_id_seq', greatest($2::bigint, 1), $2 > 0),
  setval('evalwatch.finish_finish_id_seq', greatest($3::bigint, 1), $3 > 0),
  setval('evalwatch.label_label_id_seq', (SELECT coalesce(max(label_id), 1) FROM evalwatch.label),
    EXISTS (SELECT FROM evalwatch.label)),
  setval('evalwatch.project_project_key_seq',
    (SELECT coalesce(max(project_key), 1) FROM evalwatch.project),
    EXISTS (SELECT FROM evalwatch.project))`;

function* batches(rows: Iterable<Row>): Generator<readonly Row[]> {
  let batch: Row[] = [];
  for (const row of rows) {
    batch.push(row);
    if (batch.length < MAX_BATCH) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
