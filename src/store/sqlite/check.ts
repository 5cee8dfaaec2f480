import type { Connection } from './connection.ts';
import { withStoreErrors } from './errors.ts';
import { openReadable } from './sqlite-reader.ts';

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
 * daemon may run meanwhile. Rows are read only if the pages are sound.
 * @throws {StoreError} when the store cannot be read at all, or has another schema version
 */
export async function checkStore(path: string): Promise<readonly CheckResult[]> {
  const { db, close } = await openReadable(path);
  try {
    return await withStoreErrors(path, () => {
      const pages: CheckResult = {
        rule: 'its pages and indexes are intact',
        findings: find(db, 'SELECT integrity_check FROM pragma_integrity_check').filter(
          (text) => text !== 'ok',
        ),
      };
      if (pages.findings.length > 0) return [pages];
      // One transaction, so that all rules see the same moment.
      const run = () => RULES.map(({ rule, sql }) => ({ rule, findings: find(db, sql) }));
      return [pages, ...db.transaction(run)()];
    });
  } finally {
    close();
  }
}

function find(db: Connection, sql: string): readonly string[] {
  return db.prepare<[], string>(`${sql} LIMIT ${MAX_FINDINGS}`).pluck().all();
}

/** Selects listings of which retention has deleted nothing. It deletes by time, so after a clock was set back it leaves gaps. */
const UNTOUCHED = `SELECT listing_key FROM transition_total GROUP BY listing_key
  HAVING sum(count) = (SELECT count(*) FROM transition k WHERE k.listing_key = transition_total.listing_key)`;
/** Whether the project of a listing is not being deleted. */
const hasProject = (listing: string) =>
  `EXISTS (SELECT 1 FROM listing l WHERE l.listing_key = ${listing} AND l.project_key IS NOT NULL)`;

interface Rule {
  readonly rule: string;
  /** Selects a text for each place where the rule is broken. */
  readonly sql: string;
}

const RULES: readonly Rule[] = [
  {
    rule: 'each row refers only to rows that exist',
    sql: `SELECT "table" || ' row ' || coalesce(rowid, '?') || ' lacks its ' || "parent"
      FROM pragma_foreign_key_check`,
  },
  {
    rule: 'each status is the one to which the last transition of its record led, if none was deleted',
    sql: `SELECT l.kind || ' ' || quote(t.record_id) || ' of ' || quote(p.id) || ' is '
        || coalesce(r.status, 'missing') || ', transition ' || t.transition_id || ' led to ' || t.to_status
      FROM (SELECT listing_key, record_id, max(transition_id) AS transition_id, to_status
            FROM transition GROUP BY listing_key, record_id) t
      JOIN listing l ON l.listing_key = t.listing_key
      LEFT JOIN project p ON p.project_key = l.project_key
      LEFT JOIN record r ON r.listing_key = t.listing_key AND r.id = t.record_id
      WHERE r.status IS NOT t.to_status AND t.listing_key IN (${UNTOUCHED})`,
  },
  {
    rule: 'each transition begins at the status where the previous one of its record ended, if none was deleted',
    sql: `SELECT 'transition ' || transition_id || ' begins at ' || from_status || ', the one before it ended at ' || before
      FROM (SELECT transition_id, listing_key, from_status, lag(to_status) OVER chain AS before
            FROM transition WINDOW chain AS (PARTITION BY listing_key, record_id ORDER BY transition_id))
      WHERE from_status <> before AND listing_key IN (${UNTOUCHED})`,
  },
  {
    rule: 'no total is smaller than the number of stored transitions',
    sql: `SELECT 'listing ' || t.listing_key || ', ' || from_status || ' to ' || to_status || ': ' || count(*)
        || ' stored, ' || coalesce(total.count, 0) || ' counted'
      FROM transition t LEFT JOIN transition_total total USING (listing_key, from_status, to_status)
      WHERE ${hasProject('t.listing_key')}
      GROUP BY t.listing_key, from_status, to_status HAVING count(*) > coalesce(total.count, 0)`,
  },
  {
    rule: 'each move of a prompt to FAILED has a failure',
    sql: `SELECT 'transition ' || t.transition_id || ' has no failure'
      FROM transition t JOIN listing l USING (listing_key)
      WHERE l.kind = 'prompt' AND l.project_key IS NOT NULL AND t.to_status = 'FAILED'
        AND NOT EXISTS (SELECT 1 FROM failure f WHERE f.transition_id = t.transition_id)`,
  },
  {
    rule: 'no fewer failures are counted by error_id than settled ones are stored',
    sql: `SELECT 'listing ' || f.listing_key || ': ' || count(*) || ' stored, ' || coalesce(total.count, 0) || ' counted'
      FROM failure f
      LEFT JOIN (SELECT listing_key, sum(count) AS count FROM error_total GROUP BY 1) total USING (listing_key)
      WHERE f.settled_at IS NOT NULL AND ${hasProject('f.listing_key')}
      GROUP BY f.listing_key HAVING count(*) > coalesce(total.count, 0)`,
  },
];
