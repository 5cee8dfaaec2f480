import { MAX_ERROR_LABELS } from '../../domain/failure.ts';
import { DATASET_STATUSES, PROMPT_STATUSES } from '../../domain/status.ts';
import type { Connection } from './connection.ts';
import { withStoreErrors } from './errors.ts';
import { IMPOSSIBLE_VALUES, quoted } from './impossible-values.ts';
import { SPECIAL } from './sql/error-totals.ts';
import { readMigrations } from './sql/migrate.ts';
import { findForeignSchema } from './sql/schema.ts';
import { openUnchecked } from './sqlite-reader.ts';
import { inCurrentSchema } from './upgraded-copy.ts';

/** Result of one rule of the check. */
export interface CheckResult {
  /** The rule, as a sentence. */
  readonly rule: string;
  /** Places where the rule is broken, the first {@link MAX_FINDINGS}. */
  readonly findings: readonly string[];
}

const MAX_FINDINGS = 100;

/**
 * Checks a store by SQLite's own checks and by the rules for its rows (docs/specification.md#consistency). Changes nothing; a
 * daemon may run meanwhile.
 * @throws {StoreError} when the store cannot be read at all
 */
export async function checkStore(path: string): Promise<readonly CheckResult[]> {
  const migrations = await readMigrations();
  const { db, close } = await openUnchecked(path);
  try {
    return await withStoreErrors(path, () => {
      const file = checkFile(db, migrations);
      return file.every(({ findings }) => findings.length === 0)
        ? [...file, ...checkRows(db, migrations)]
        : file;
    });
  } finally {
    close();
  }
}

/** Checks the schema and the pages. Rows are read only if both are sound: a view in the place of a table could answer anything. */
function checkFile(db: Connection, migrations: readonly string[]): readonly CheckResult[] {
  const schema: CheckResult = {
    rule: 'its tables, indexes and triggers are those that evalwatch makes',
    findings: findForeignSchema(db, migrations).slice(0, MAX_FINDINGS),
  };
  if (schema.findings.length > 0) return [schema];
  const pages: CheckResult = {
    rule: 'its pages and indexes are intact',
    findings: find(db, 'SELECT integrity_check FROM pragma_integrity_check').filter(
      (text) => text !== 'ok',
    ),
  };
  return [schema, pages];
}

function checkRows(db: Connection, migrations: readonly string[]): readonly CheckResult[] {
  const current = inCurrentSchema(db, migrations);
  try {
    const run = () => RULES.map(({ rule, sql }) => ({ rule, findings: find(current, sql) }));
    // One transaction, so that all rules see the same moment.
    return current.transaction(run)();
  } finally {
    if (current !== db) current.close();
  }
}

function find(db: Connection, sql: string): readonly string[] {
  return db.prepare<[], string>(`${sql} LIMIT ${MAX_FINDINGS}`).pluck().all();
}

interface Rule {
  readonly rule: string;
  /** Selects a text for each place where the rule is broken. */
  readonly sql: string;
}

const PLACE = "l.kind || ' ' || quote(r.id) || ' of ' || quote(p.id)";
const RECORDS = `(record r JOIN listing l ON l.listing_key = r.listing_key
  LEFT JOIN project p ON p.project_key = l.project_key)`;
/** Selects listings of which retention has deleted nothing. It deletes by time, so after a clock was set back it leaves gaps. */
const UNTOUCHED = `SELECT listing_key FROM transition_total GROUP BY listing_key
  HAVING sum(count) = (SELECT count(*) FROM transition k WHERE k.listing_key = transition_total.listing_key)`;
const isUnknown = (column: string) =>
  `${column} NOT IN (${quoted(PROMPT_STATUSES)}) AND l.kind = 'prompt'
   OR ${column} NOT IN (${quoted(DATASET_STATUSES)}) AND l.kind = 'dataset'`;

const RULES: readonly Rule[] = [
  {
    rule: 'each row refers only to rows that exist',
    sql: `SELECT "table" || ' row ' || coalesce(rowid, '?') || ' lacks its ' || "parent"
      FROM pragma_foreign_key_check`,
  },
  { rule: 'each value is one that evalwatch can have written', sql: IMPOSSIBLE_VALUES },
  {
    rule: 'each record has a status of its kind',
    sql: `SELECT ${PLACE} || ' is ' || quote(r.status) FROM ${RECORDS}
      WHERE ${isUnknown('r.status')}`,
  },
  {
    rule: 'each status is the one to which the last transition of its record led, if none was deleted',
    sql: `SELECT ${PLACE} || ' is ' || r.status || ', transition ' || t.transition_id || ' led to ' || t.to_status
      FROM (SELECT listing_key, record_id, max(transition_id) AS transition_id, to_status
            FROM transition GROUP BY listing_key, record_id) t
      JOIN ${RECORDS} ON r.listing_key = t.listing_key AND r.id = t.record_id
      WHERE r.status <> t.to_status AND t.listing_key IN (${UNTOUCHED})`,
  },
  {
    rule: 'each transition begins at the status where the previous one of its record ended, if none was deleted',
    sql: `SELECT 'transition ' || transition_id || ' begins at ' || from_status || ', the one before it ended at ' || before
      FROM (SELECT transition_id, listing_key, from_status, lag(to_status) OVER chain AS before
            FROM transition WINDOW chain AS (PARTITION BY listing_key, record_id ORDER BY transition_id))
      WHERE from_status <> before AND listing_key IN (${UNTOUCHED})`,
  },
  {
    rule: 'each transition leads to another status',
    sql: `SELECT 'transition ' || transition_id || ' stays at ' || to_status
      FROM transition WHERE from_status = to_status`,
  },
  {
    rule: 'each transition belongs to a stored record',
    sql: `SELECT 'transition ' || transition_id || ' is of ' || quote(record_id)
      FROM transition t
      WHERE NOT EXISTS (SELECT 1 FROM record r WHERE r.listing_key = t.listing_key AND r.id = t.record_id)
        AND EXISTS (SELECT 1 FROM listing l WHERE l.listing_key = t.listing_key AND l.project_key IS NOT NULL)`,
  },
  {
    rule: 'no total is smaller than the number of stored transitions',
    sql: `SELECT 'listing ' || t.listing_key || ', ' || from_status || ' to ' || to_status || ': ' || count(*)
        || ' stored, ' || coalesce(total.count, 0) || ' counted'
      FROM transition t LEFT JOIN transition_total total USING (listing_key, from_status, to_status)
      WHERE EXISTS (SELECT 1 FROM listing l WHERE l.listing_key = t.listing_key AND l.project_key IS NOT NULL)
      GROUP BY t.listing_key, from_status, to_status HAVING count(*) > coalesce(total.count, 0)`,
  },
  {
    rule: 'no more durations are counted than prompts left the status',
    sql: `SELECT 'listing ' || d.listing_key || ', ' || d.status || ': ' || sum(d.count) || ' counted, '
        || moved.count || ' left it'
      FROM prompt_duration d
      JOIN (SELECT l.listing_key, s.status, coalesce(sum(t.count), 0) AS count
            FROM listing l CROSS JOIN (SELECT 'PENDING' AS status UNION ALL SELECT 'RUNNING') s
            LEFT JOIN transition_total t ON t.listing_key = l.listing_key AND t.from_status = s.status
            GROUP BY 1, 2) moved USING (listing_key, status)
      GROUP BY d.listing_key, d.status HAVING sum(d.count) > moved.count`,
  },
  {
    rule: 'no fewer failures are counted by error_id than settled ones are stored',
    sql: `SELECT 'listing ' || f.listing_key || ': ' || count(*) || ' stored, ' || coalesce(total.count, 0) || ' counted'
      FROM failure f
      LEFT JOIN (SELECT listing_key, sum(count) AS count FROM error_total GROUP BY 1) total USING (listing_key)
      WHERE f.settled_at IS NOT NULL
        AND EXISTS (SELECT 1 FROM listing l WHERE l.listing_key = f.listing_key AND l.project_key IS NOT NULL)
      GROUP BY f.listing_key HAVING count(*) > coalesce(total.count, 0)`,
  },
  {
    rule: `no project has more than ${MAX_ERROR_LABELS} error_ids`,
    sql: `SELECT 'listing ' || listing_key || ' has ' || count(*) FROM error_total
      WHERE label NOT IN (${SPECIAL}) GROUP BY listing_key HAVING count(*) > ${MAX_ERROR_LABELS}`,
  },
  {
    rule: 'each settled failure, and no other one, has a cause',
    sql: `SELECT 'failure ' || transition_id FROM failure WHERE (settled_at IS NULL) <> (cause_id IS NULL)`,
  },
  {
    rule: 'each move of a prompt to FAILED has a failure',
    sql: `SELECT 'transition ' || t.transition_id || ' has no failure'
      FROM transition t JOIN listing l USING (listing_key)
      WHERE l.kind = 'prompt' AND l.project_key IS NOT NULL AND t.to_status = 'FAILED'
        AND NOT EXISTS (SELECT 1 FROM failure f WHERE f.transition_id = t.transition_id)`,
  },
  {
    rule: 'each settled failure, and no pending one, has a settlement number',
    sql: `SELECT 'failure ' || f.transition_id FROM failure f LEFT JOIN settlement s USING (transition_id)
      WHERE (f.settled_at IS NULL) <> (s.transition_id IS NULL)`,
  },
  {
    rule: 'each failure belongs to a move of a prompt to FAILED',
    sql: `SELECT 'failure ' || f.transition_id
      FROM failure f JOIN transition t USING (transition_id) JOIN listing l ON l.listing_key = t.listing_key
      WHERE l.kind <> 'prompt' OR t.to_status <> 'FAILED' OR f.listing_key <> t.listing_key`,
  },
];
