import { createHash } from 'node:crypto';
import { StoreError } from '../../monitor/errors.ts';
import { openDatabase, type RunInTransaction } from './database.ts';
import { migrate } from './sql/migrate.ts';
import { toStored } from './sql/text.ts';
import { readUrl } from './url.ts';

/** With the types of the columns that are filled, in the order in which they are. */
const TABLES = {
  project: `project_key bigint, id text, configured_at bigint, removed_at bigint, version bigint,
    up boolean, consecutive_failures integer, reason text, last_poll_at bigint,
    last_success_at bigint, prompts json, datasets json`,
  record: `project_key bigint, kind text, id text, since bigint, missing integer, gone boolean,
    status text, status_raw text, name text, timestamp text`,
  transition: `transition_id bigint, project_key bigint, at bigint, epoch bigint, version bigint,
    kind text, from_status text, to_status text, record_id text, record_name text`,
  failure: `transition_id bigint, project_key bigint, tries integer, useless_tries integer,
    first_try_at bigint, last_try_at bigint, next_try_at bigint, settled_at bigint, error_id text,
    error_msg text, error_msg_truncated boolean, reason text`,
  settlement: 'settlement_id bigint, transition_id bigint',
} as const;

type Table = keyof typeof TABLES;
type Row = Readonly<Record<string, string | number | null>>;

/** All that another store holds, by the columns of this one; see the tables above. */
interface ImportSource {
  rows(table: Table): Iterable<Row>;
  /** The last number that was given out there. */
  lastNumber(table: 'transition' | 'settlement'): number;
}

interface ImportOptions {
  /** Of the database. */
  readonly url: string;
  readonly source: ImportSource;
  /** Told of the rows that were written so far. */
  readonly onProgress?: (rows: number) => void;
}

interface Imported {
  /** The same source was imported before: nothing was done now. */
  readonly before: boolean;
  /** What there is of it. */
  readonly rows: Readonly<Record<ImportedRows, number>>;
}

type ImportedRows =
  'projects' | 'prompts' | 'datasets' | 'transitions' | 'failures' | 'pending_failures';

const TABLE_NAMES = ['project', 'record', 'transition', 'failure', 'settlement'] as const;
const BATCH = 2000;
const TIMEOUT_MS = 60_000;

/**
 * Copies a store into the empty database of `url`, in one transaction: whenever it is killed, all of it is there or
 * nothing. A hash of what was copied stays with the schema, so that a repetition knows what it finds.
 * @throws {StoreError} also if there is something else in it, or a worker that uses it
 */
export async function importStore(options: ImportOptions): Promise<Imported> {
  const { url, source, onProgress = () => {} } = options;
  const database = openDatabase({
    settings: await readUrl(url),
    connections: 1,
    timeoutMs: TIMEOUT_MS,
  });
  try {
    await migrate(database);
    return await database.transaction(async (run) => {
      // Who wants to write waits until it is over.
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

/** JSON within JSON is a text to begin with. */
function insertInto(table: Table): string {
  const columns = [...TABLES[table].matchAll(/(\w+) (\w+)(?:,|$)/g)].map(
    ([, name = '', type = '']) => ({ name, type }),
  );
  return `INSERT INTO evalwatch.${table} (${columns.map(({ name }) => name).join(', ')})
    SELECT ${columns.map(({ name, type }) => `${name}::${type}`).join(', ')}
    FROM json_to_recordset($1) AS r(${TABLES[table].replaceAll(' json', ' text')})`;
}

/** Of nobody's commits: no ownership has the epoch 0. */
const NO_COMMIT = { epoch: 0, version: 0 };

function toJson(table: Table, rows: readonly Row[]): string {
  const all = table === 'transition' ? rows.map((row) => ({ ...row, ...NO_COMMIT })) : rows;
  return JSON.stringify(all, (_, value: unknown) =>
    typeof value === 'string' ? toStored(value) : value,
  );
}

/** What comes next gets the numbers that it would have got there. */
const SET_NUMBERS = `SELECT
  setval('evalwatch.transition_transition_id_seq', greatest($1::bigint, 1), $1 > 0),
  setval('evalwatch.settlement_settlement_id_seq', greatest($2::bigint, 1), $2 > 0),
  setval('evalwatch.project_project_key_seq',
    (SELECT coalesce(max(project_key), 1) FROM evalwatch.project),
    EXISTS (SELECT FROM evalwatch.project))`;

/** Counts what goes by, and hashes it. */
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
    if (batch.length < BATCH) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
