import { createHash } from 'node:crypto';
import { cleanUnicode } from '../../domain/visible.ts';
import { StoreError } from '../../monitor/errors.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import { openDatabase, type RunInTransaction } from './database.ts';
import { migrate } from './sql/migrate.ts';
import { readUrl } from './url.ts';

/** The tables in the order in which they are filled, with the types of the columns that are filled. */
const TABLES = {
  project: `project_key bigint, id text, configured_at bigint, removed_at bigint, version bigint,
    up boolean, consecutive_failures integer, reason text, last_poll_at bigint,
    last_success_at bigint, steady_since bigint, prompts json, datasets json`,
  record: `project_key bigint, kind text, id text, since bigint, missing integer, gone boolean,
    status text, status_raw text, name text, timestamp text`,
  transition: `transition_id bigint, project_key bigint, at bigint, epoch bigint, version bigint,
    kind text, from_status text, to_status text, record_id text, record_name text`,
  failure: `transition_id bigint, project_key bigint, tries integer, useless_tries integer,
    first_try_at bigint, last_try_at bigint, next_try_at bigint, settled_at bigint, error_id text,
    error_msg text, error_msg_truncated boolean, reason text, cause text, cause_id text`,
  settlement: 'settlement_id bigint, transition_id bigint',
  error_total: `project_key bigint, label text, place smallint, count bigint, first_seen_at bigint,
    last_seen_at bigint`,
  prompt_duration: 'project_key bigint, status text, day integer, bucket integer, count bigint',
} as const;

type Table = keyof typeof TABLES;
type Row = Readonly<Record<string, string | number | null>>;

/** The content of another store, by the columns of the tables above. */
interface ImportSource {
  rows(table: Table): Iterable<Row>;
  /** Last number that the other store has given to a row of this table. */
  lastNumber(table: 'transition' | 'settlement'): number;
}

interface ImportOptions {
  readonly clock: Clock;
  /** Connection string of the database. */
  readonly url: string;
  readonly source: ImportSource;
  /** Receives the number of rows written so far. */
  readonly onProgress?: (rows: number) => void;
}

interface Imported {
  /** Whether the same source was imported before; then nothing was done now. */
  readonly before: boolean;
  /** Number of imported rows. */
  readonly rows: Readonly<Record<ImportedRows, number>>;
}

type ImportedRows =
  'projects' | 'prompts' | 'datasets' | 'transitions' | 'failures' | 'pending_failures';

const TABLE_NAMES = [
  'project',
  'record',
  'transition',
  'failure',
  'settlement',
  'prompt_duration',
  'error_total',
] as const;
const MAX_BATCH = 2000;
const TIMEOUT_MS = 60_000;

/**
 * Copies a store into the empty database of `url` in one transaction, so that a killed import leaves nothing. A hash of the
 * copied rows stays as a comment of the schema, by which a repetition recognises its own work.
 * @throws {StoreError} also if the database has other content, or a worker uses it
 */
export async function importStore(options: ImportOptions): Promise<Imported> {
  const { url, source, clock, onProgress = () => {} } = options;
  const database = openDatabase({
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
      if (found?.filled === true) return { before: true, rows: await recognise(found, source) };
      if (found?.used === true) {
        throw new StoreError(
          'busy',
          'a worker uses the database of store.postgres_url_file or _env: stop all of them before',
        );
      }
      return { before: false, rows: await copy(run, source, onProgress) };
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

async function recognise({ mark }: FoundRow, source: ImportSource): Promise<Imported['rows']> {
  const tally = createTally();
  for (const table of TABLE_NAMES) {
    for (const rows of batches(source.rows(table))) tally.add(table, rows);
  }
  if (mark === markOf(tally.digest(source))) return tally.rows();
  throw new StoreError(
    'other',
    'the database of store.postgres_url_file or _env is not empty: name another one, or drop its schema evalwatch',
  );
}

async function copy(
  run: RunInTransaction,
  source: ImportSource,
  onProgress: (rows: number) => void,
): Promise<Imported['rows']> {
  const tally = createTally();
  let written = 0;
  for (const table of TABLE_NAMES) {
    for (const rows of batches(source.rows(table))) {
      tally.add(table, rows);
      await run(insertInto(table), [toJson(table, rows)]);
      written += rows.length;
      onProgress(written);
    }
  }
  await run(SET_NUMBERS, [source.lastNumber('transition'), source.lastNumber('settlement')]);
  await run(`COMMENT ON SCHEMA evalwatch IS '${markOf(tally.digest(source))}'`);
  return tally.rows();
}

function markOf(digest: string): string {
  return `moved here: ${digest}`;
}

/** Columns with JSON arrive as text within the JSON of the rows. */
function insertInto(table: Table): string {
  const columns = [...TABLES[table].matchAll(/(\w+) (\w+)(?:,|$)/g)].map(
    ([, name = '', type = '']) => ({ name, type }),
  );
  return `INSERT INTO evalwatch.${table} (${columns.map(({ name }) => name).join(', ')})
    SELECT ${columns.map(({ name, type }) => `${name}::${type}`).join(', ')}
    FROM json_to_recordset($1) AS r(${TABLES[table].replaceAll(' json', ' text')})`;
}

/** Marks transitions that no commit of a worker made: no ownership has the epoch 0. */
const NO_COMMIT = { epoch: 0, version: 0 };

function toJson(table: Table, rows: readonly Row[]): string {
  const all = table === 'transition' ? rows.map((row) => ({ ...row, ...NO_COMMIT })) : rows;
  return JSON.stringify(all, (_, value: unknown) =>
    typeof value === 'string' ? cleanUnicode(value) : value,
  );
}

/** Lets later rows go on with the numbers of the source. */
const SET_NUMBERS = `SELECT
  setval('evalwatch.transition_transition_id_seq', greatest($1::bigint, 1), $1 > 0),
  setval('evalwatch.settlement_settlement_id_seq', greatest($2::bigint, 1), $2 > 0),
  setval('evalwatch.project_project_key_seq',
    (SELECT coalesce(max(project_key), 1) FROM evalwatch.project),
    EXISTS (SELECT FROM evalwatch.project))`;

/** Counts and hashes rows. */
function createTally() {
  const hash = createHash('sha256');
  const rows = {
    projects: 0,
    prompts: 0,
    datasets: 0,
    transitions: 0,
    failures: 0,
    pending_failures: 0,
  };
  return {
    add: (table: Table, batch: readonly Row[]): void => {
      for (const row of batch) {
        hash.update(JSON.stringify([table, row]));
        if (table === 'project') rows.projects += 1;
        if (table === 'record') rows[row['kind'] === 'prompt' ? 'prompts' : 'datasets'] += 1;
        if (table === 'transition') rows.transitions += 1;
        if (table === 'failure') {
          rows.failures += 1;
          if (row['settled_at'] === null) rows.pending_failures += 1;
        }
      }
    },
    digest: (source: ImportSource): string => {
      const numbers = [source.lastNumber('transition'), source.lastNumber('settlement')];
      return hash.update(JSON.stringify(numbers)).digest('hex');
    },
    rows: (): Imported['rows'] => rows,
  };
}

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
