import { LABELS } from '../domain/record.ts';
import { UNFINISHED_STATUSES } from '../domain/status.ts';
import type { PruneLimits } from '../monitor/ports/store.ts';
import { type Table, TABLES } from './contents.ts';
import { SPECIAL } from './failures.ts';
import type { Change, Parameters, Write } from './sql.ts';

/** Maximum number of rows of a table that one transaction deletes, so that polls wait for a short time only. */
const MAX_ROWS = 2000;

/** Selects some of the rows `r`. Workers that prune at the same time take different ones. */
function some(columns: string, from: string): string {
  return `SELECT ${columns} FROM ${from} LIMIT ${MAX_ROWS} FOR UPDATE OF r SKIP LOCKED`;
}

/** Selects rows `r` of deleted projects. */
function waste(table: string): string {
  return `evalwatch.waste w CROSS JOIN evalwatch.${table} r WHERE r.project_key = w.project_key`;
}

/** Deletes transitions `r` with their failures and settlements. */
function deleteTransitions(name: string, from: string): Change {
  const which = 'transition_id IN (SELECT transition_id FROM old)';
  return {
    name,
    first: {
      old: some('r.transition_id', from),
      settlements: `DELETE FROM evalwatch.settlement WHERE ${which}`,
      failures: `DELETE FROM evalwatch.failure WHERE ${which}`,
      transitions: `DELETE FROM evalwatch.transition WHERE ${which}`,
    },
    last: 'SELECT 1 AS found FROM old LIMIT 1',
  };
}

/** Deletes rows `r` of a table. */
function deleteRows(name: string, table: Table, from: string): Change {
  const key = TABLES[table];
  return {
    name,
    first: {
      old: some(key.replaceAll(/\w+/g, 'r.$&'), from),
      deleted: `DELETE FROM evalwatch.${table} WHERE (${key}) IN (SELECT ${key} FROM old)`,
    },
    last: 'SELECT 1 AS found FROM old LIMIT 1',
  };
}

const IS_PENDING = 'SELECT 1 FROM evalwatch.failure f WHERE f.settled_at IS NULL AND';
/** Tables with rows of a project that go with it, besides its transitions. */
export const WASTED = [
  'record',
  'experiment',
  'finish',
  'label',
  'prompt_duration',
  'error_total',
  'told',
  'message',
] as const;
const STATUSES = UNFINISHED_STATUSES.map((status) => `SELECT '${status}' AS status`);

/** Run in this order, each until it finds no rows. */
const STEPS: readonly Change[] = [
  {
    name: 'prune_projects',
    first: {
      deleted: `DELETE FROM evalwatch.project AS p
        WHERE p.removed_at < :before AND NOT EXISTS (${IS_PENDING} f.project_key = p.project_key)
        RETURNING project_key`,
      wasted: 'INSERT INTO evalwatch.waste (project_key) SELECT project_key FROM deleted',
    },
    last: 'SELECT 1 AS found FROM deleted LIMIT 1',
  },
  deleteTransitions(
    'prune_transitions',
    `evalwatch.transition r
      WHERE r.at < :before AND NOT EXISTS (${IS_PENDING} f.transition_id = r.transition_id)`,
  ),
  deleteTransitions('prune_waste_transitions', waste('transition')),
  ...WASTED.map((table) => deleteRows(`prune_waste_${table}`, table, waste(table))),
  {
    name: 'prune_keys',
    last: `DELETE FROM evalwatch.waste AS w WHERE ${['transition', ...WASTED]
      .map(
        (table) =>
          `NOT EXISTS (SELECT 1 FROM evalwatch.${table} r WHERE r.project_key = w.project_key)`,
      )
      .join(' AND ')} RETURNING project_key`,
  },
  // Looks up the first days of each status in the primary key instead of reading every row.
  deleteRows(
    'prune_durations',
    'prompt_duration',
    `evalwatch.project p CROSS JOIN (${STATUSES.join(' UNION ALL ')}) AS s
      CROSS JOIN evalwatch.prompt_duration r
      WHERE r.project_key = p.project_key AND r.status = s.status AND r.day < :firstDay`,
  ),
  {
    name: 'prune_error_totals',
    first: {
      old: some(
        'r.project_key, r.label, p.id AS project',
        `evalwatch.error_total r JOIN evalwatch.project p ON p.project_key = r.project_key
          WHERE r.last_seen_at < :before AND r.label NOT IN (${SPECIAL})`,
      ),
      deleted: `DELETE FROM evalwatch.error_total
        WHERE (project_key, label) IN (SELECT project_key, label FROM old)`,
    },
    last: 'SELECT project, label FROM old',
  },
  deleteRows('prune_finishes', 'finish', 'evalwatch.finish r WHERE r.at < :before'),
  deleteRows(
    'prune_experiments',
    'experiment',
    `evalwatch.experiment r WHERE r.pending + r.running + r.completed + r.failed + r.unknown = 0
      AND coalesce(r.moved_at, 0) < :before`,
  ),
];

/** Number of labels up to which a project keeps those that nothing has any more: to find them, all its records are read. */
const MAX_UNUSED_LABELS = 1000;

/** Returns the projects that have more. */
const LABELLED: Change = {
  name: 'labelled_projects',
  last: `SELECT r.project_key AS key FROM evalwatch.label r
    GROUP BY r.project_key HAVING count(*) > ${MAX_UNUSED_LABELS}`,
};

const USED_LABELS = [
  ...LABELS.map((label) => `${label} AS label_id FROM evalwatch.record`),
  ...['experiment', 'finish'].map((table) => `label_id FROM evalwatch.${table}`),
].map((from) => `SELECT ${from} WHERE project_key = :key`);

/** Run after these for each of these projects. */
const PRUNE_LABELS: Change = {
  name: 'prune_labels',
  first: {
    old: `WITH used AS MATERIALIZED (${USED_LABELS.join(' UNION ')}) ${some(
      'r.label_id',
      `evalwatch.label r WHERE r.project_key = :key
        AND NOT EXISTS (SELECT 1 FROM used u WHERE u.label_id = r.label_id)`,
    )}`,
    deleted: 'DELETE FROM evalwatch.label WHERE label_id IN (SELECT label_id FROM old)',
  },
  last: 'SELECT 1 AS found FROM old LIMIT 1',
};

/** For how long a receiver that is not configured is known, ms: workers take over a new configuration one after the other. */
const KNOWN_MS = 24 * 60 * 60 * 1000;

/** Run after these, if the receivers are given. */
const RECEIVER_STEPS: readonly Change[] = [
  {
    name: 'see_receivers',
    last: `UPDATE evalwatch.receiver SET seen_at = :at
      WHERE kind || ' ' || receiver IN (SELECT value FROM json_each(:subscriptions))`,
  },
  {
    name: 'prune_receivers',
    last: 'DELETE FROM evalwatch.receiver WHERE seen_at < :lastSeen',
  },
  deleteRows(
    'prune_told',
    'told',
    `evalwatch.told r WHERE NOT EXISTS (
      SELECT 1 FROM evalwatch.receiver s WHERE s.receiver = r.receiver AND s.kind = r.kind)`,
  ),
  deleteRows(
    'prune_messages',
    'message',
    `evalwatch.message r WHERE NOT EXISTS (SELECT 1 FROM evalwatch.receiver s WHERE s.receiver = r.receiver)`,
  ),
];

/**
 * Deletes rows older than their retention (docs/specification.md#retention). A removed project is deleted at once, so that it
 * returns as a new one; its rows follow in chunks, with other writes in between. Rows with a pending failure stay.
 * @param isClosing ends the pruning between two transactions
 * @param onForgotten receives each error_id of a project that is counted no longer
 */
export async function prune(
  write: Write,
  { before, firstDay, receivers }: PruneLimits,
  isClosing: () => boolean,
  onForgotten: (project: string, label: string) => void,
): Promise<void> {
  const parameters = { before, firstDay, ...(receivers && receiverParameters(receivers)) };
  const run = async (step: Change, given: Parameters): Promise<void> => {
    for (let found = 1; found > 0 && !isClosing();) {
      const rows = await write<{ readonly project?: string; readonly label?: string }>(step, given);
      for (const { project, label } of rows) {
        if (project !== undefined && label !== undefined) onForgotten(project, label);
      }
      found = rows.length;
    }
  };
  for (const step of receivers ? [...STEPS, ...RECEIVER_STEPS] : STEPS) await run(step, parameters);
  if (isClosing()) return;
  for (const { key } of await write<{ readonly key: number }>(LABELLED, {})) {
    await run(PRUNE_LABELS, { key });
  }
}

function receiverParameters({ at, configured }: NonNullable<PruneLimits['receivers']>): Parameters {
  const subscriptions = configured.flatMap(({ name, on }) => on.map((kind) => `${kind} ${name}`));
  return { at, lastSeen: at - KNOWN_MS, subscriptions: JSON.stringify(subscriptions) };
}
