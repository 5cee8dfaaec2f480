import { LABELS } from '../../domain/record.ts';
import { PROMPT_STATUSES } from '../../domain/status.ts';
import { WASTED } from '../pruning.ts';
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

/** The listings of the projects that are not being deleted, with their summaries (`domain/summary.ts`). */
const LISTINGS = `(SELECT project_key, id AS project, 'prompt' AS kind, prompts AS summary FROM project
  UNION ALL SELECT project_key, id, 'dataset', datasets FROM project)`;
const TOTALS = `(SELECT project_key, kind, t.value ->> 0 AS from_status, t.value ->> 1 AS to_status, t.value ->> 2 AS count
  FROM ${LISTINGS}, json_each(summary, '$.totals') t)`;
/** Selects listings of which retention has deleted nothing. It deletes by time, so after a clock was set back it leaves gaps. */
const UNTOUCHED = `SELECT project_key, kind FROM ${TOTALS} total GROUP BY 1, 2
  HAVING sum(count) = (SELECT count(*) FROM transition t WHERE t.project_key = total.project_key AND t.kind = total.kind)`;

interface Rule {
  readonly rule: string;
  /** Selects a text for each place where the rule is broken. */
  readonly sql: string;
}

const OF = "|| ' of project ' || project_key";
const OF_PROJECTS = ['transition', 'failure', ...WASTED];

/** Selects `what` of the rows that name a label which their project does not have. */
function withoutLabel(table: string, column: string, what: string): string {
  return `UNION ALL SELECT ${what} FROM ${table} r
    WHERE ${column} IS NOT NULL AND NOT EXISTS (
      SELECT 1 FROM label l WHERE l.label_id = r.${column} AND l.project_key = r.project_key)`;
}

const RULES: readonly Rule[] = [
  {
    rule: 'each row refers only to rows that exist',
    sql: `${OF_PROJECTS.map(
      (table) => `SELECT DISTINCT '${table} of project ' || project_key FROM ${table}
        WHERE project_key NOT IN (SELECT project_key FROM project UNION ALL SELECT project_key FROM waste)`,
    ).join(' UNION ALL ')}
      ${LABELS.map((label) =>
        withoutLabel(
          'record',
          label,
          `kind || ' ' || quote(id) ${OF} || ' has the ${label} ' || ${label}`,
        ),
      ).join(' ')}
      ${['experiment', 'finish'].map((table) => withoutLabel(table, 'label_id', `'${table} ' || label_id ${OF}`)).join(' ')}
      UNION ALL SELECT 'failure ' || transition_id FROM failure
        WHERE transition_id NOT IN (SELECT transition_id FROM transition)
      UNION ALL SELECT 'settlement ' || settlement_id FROM settlement
        WHERE transition_id NOT IN (SELECT transition_id FROM failure)`,
  },
  {
    rule: 'each status is the one to which the last transition of its record led, if none was deleted',
    sql: `SELECT t.kind || ' ' || quote(t.record_id) || ' of ' || quote(p.id) || ' is '
        || coalesce(r.status, 'missing') || ', transition ' || t.transition_id || ' led to ' || t.to_status
      FROM (SELECT project_key, kind, record_id, max(transition_id) AS transition_id, to_status
            FROM transition GROUP BY 1, 2, 3) t
      JOIN project p USING (project_key)
      LEFT JOIN record r ON r.project_key = t.project_key AND r.kind = t.kind AND r.id = t.record_id
      WHERE r.status IS NOT t.to_status AND (t.project_key, t.kind) IN (${UNTOUCHED})`,
  },
  {
    rule: 'each transition begins at the status where the previous one of its record ended, if none was deleted',
    sql: `SELECT 'transition ' || transition_id || ' begins at ' || from_status || ', the one before it ended at ' || before
      FROM (SELECT transition_id, project_key, kind, from_status, lag(to_status) OVER chain AS before FROM transition
            WINDOW chain AS (PARTITION BY project_key, kind, record_id ORDER BY transition_id))
      WHERE from_status <> before AND (project_key, kind) IN (${UNTOUCHED})`,
  },
  {
    rule: 'no total is smaller than the number of stored transitions',
    sql: `SELECT kind || 's of ' || quote(p.id) || ', ' || from_status || ' to ' || to_status || ': ' || count(*)
        || ' stored, ' || coalesce(total.count, 0) || ' counted'
      FROM transition t JOIN project p USING (project_key)
      LEFT JOIN ${TOTALS} total USING (project_key, kind, from_status, to_status)
      GROUP BY project_key, kind, from_status, to_status HAVING count(*) > coalesce(total.count, 0)`,
  },
  {
    rule: 'each count of a status, and its longest wait, is that of the stored records',
    sql: `SELECT l.kind || 's of ' || quote(l.project) || ', ' || status || ': ' || coalesce(records, 0) || ' stored, '
        || coalesce(counted, 0) || ' counted'
      FROM (SELECT project_key, kind, key AS status, value AS counted, summary ->> ('$.oldest.' || key) AS oldest
            FROM ${LISTINGS}, json_each(summary, '$.counts'))
      FULL JOIN (SELECT project_key, kind, status, count(*) AS records,
              iif(status IN ('PENDING', 'RUNNING'), min(since), NULL) AS earliest
            FROM record WHERE NOT gone GROUP BY 1, 2, 3) USING (project_key, kind, status)
      JOIN ${LISTINGS} l USING (project_key, kind)
      WHERE coalesce(counted, 0) <> coalesce(records, 0) OR oldest IS NOT earliest`,
  },
  {
    rule: 'each count of an experiment is that of its stored prompts',
    sql: `SELECT quote(l.text) || ' of ' || quote(p.id) || ', ' || status || ': ' || coalesce(records, 0) || ' stored, '
        || coalesce(counted, 0) || ' counted'
      FROM (${PROMPT_STATUSES.map(
        (status) =>
          `SELECT project_key, label_id, '${status}' AS status, ${status.toLowerCase()} AS counted FROM experiment`,
      ).join(' UNION ALL ')})
      FULL JOIN (SELECT project_key, experiment AS label_id, status, count(*) AS records FROM record
        WHERE kind = 'prompt' AND NOT gone AND experiment IS NOT NULL GROUP BY 1, 2, 3)
        USING (project_key, label_id, status)
      JOIN project p USING (project_key) JOIN label l USING (label_id)
      WHERE coalesce(counted, 0) <> coalesce(records, 0)`,
  },
  {
    rule: 'each project says whether an experiment of it has ended and not finished',
    sql: `SELECT quote(id) FROM project p
      WHERE coalesce(prompts ->> '$.finishing', 0) <> EXISTS (SELECT 1 FROM experiment e
        WHERE e.project_key = p.project_key AND started_at IS NOT NULL AND ended_at IS NOT NULL AND finished_at IS NULL)`,
  },
  {
    rule: 'each move of a prompt to FAILED has a failure',
    sql: `SELECT 'transition ' || t.transition_id || ' has no failure'
      FROM transition t JOIN project p USING (project_key)
      WHERE t.kind = 'prompt' AND t.to_status = 'FAILED'
        AND NOT EXISTS (SELECT 1 FROM failure f WHERE f.transition_id = t.transition_id)`,
  },
  {
    rule: 'no fewer failures are counted by error_id than settled ones are stored',
    sql: `SELECT quote(p.id) || ': ' || count(*) || ' stored, ' || coalesce(total.count, 0) || ' counted'
      FROM failure f JOIN project p USING (project_key)
      LEFT JOIN (SELECT project_key, sum(count) AS count FROM error_total GROUP BY 1) total USING (project_key)
      WHERE f.settled_at IS NOT NULL
      GROUP BY project_key HAVING count(*) > coalesce(total.count, 0)`,
  },
];
