import type { Kind } from '../../../domain/status.ts';
import type { Transition } from '../../../domain/transition.ts';
import type { CommittedTransition } from '../../../monitor/ports/store.ts';
import type { NextExperiment } from '../../outcome.ts';
import { toOwnExperimentColumns, toHealthColumns, unknownProject } from '../../rows.ts';
import { forSqlite } from '../../sql.ts';
import type { Connection } from '../connection.ts';
import type { ListingRows, PollPart } from './poll-rows.ts';

/** Rows of one insert statement: each then takes two thirds of the time of one in a statement by itself. */
const ROWS_TOGETHER = 20;

/** What a part of a poll stored. */
export interface CommittedPart {
  readonly transitions: readonly CommittedTransition[];
  /** Numbers of the finishes, in the order of their experiments. */
  readonly finishIds: readonly number[];
}

/** Commits a part of a poll, in a transaction (`Store.commitPoll`). */
export type CommitPart = (part: PollPart) => CommittedPart | undefined;

export function createPollCommit(db: Connection): CommitPart {
  const statements = prepare(db);

  function commit(part: PollPart): CommittedPart | undefined {
    const { at, listings } = part;
    const key = part.isContinued ? findProject(part.project) : updateProject(part);
    if (key === undefined) return undefined;
    const transitions = listings.flatMap((rows) => commitListing(key, rows, at));
    const experiments = listings.flatMap((rows) => rows.experiments);
    return {
      transitions,
      finishIds: experiments.flatMap((each) => commitExperiment(key, each, at)),
    };
  }

  function findProject(project: string): number {
    const key = statements.projectKey.get(project);
    if (key === undefined) throw unknownProject(project);
    return key;
  }

  /** Returns the key of the project; undefined if another commit came first. */
  function updateProject(part: PollPart): number | undefined {
    const { project, token, prompts = null, datasets = null } = part;
    const key = findProject(project);
    const isListed = Number(part.listings.length > 0);
    const health = { ...toHealthColumns(part.health), up: Number(part.health.up) };
    const row = { key, token, isListed, prompts, datasets, ...health };
    const { changes } = statements.updateProject.run(row);
    return changes > 0 ? key : undefined;
  }

  function commitListing(
    key: number,
    rows: ListingRows,
    at: number,
  ): readonly CommittedTransition[] {
    const { kind, transitions, durations } = rows;
    upsertRecords(key, rows);
    for (const { status, day, bucket, count } of durations) {
      statements.addDurations.run(key, status, day, bucket, count);
    }
    return transitions.map((transition) => addTransition(key, kind, transition, at));
  }

  /** Returns the numbers of these labels of a project; new ones are added. */
  function findLabels(key: number, texts: readonly string[]): readonly number[] {
    return texts.map(
      (text) =>
        statements.label.get(key, text) ??
        Number(statements.insertLabel.run(key, text).lastInsertRowid),
    );
  }

  function upsertRecords(key: number, rows: ListingRows): void {
    const { kind, records, places } = rows;
    const labels = findLabels(key, rows.labels);
    const labelAt = (index: number) => labels[(places[index] ?? 0) - 1] ?? null;
    const upsert = (statement: typeof statements.upsertRecord, start: number, end: number) => {
      const values: unknown[] = [];
      for (let index = start; index < end; index += 1) {
        values.push(...(records[index] ?? []));
        values.push(labelAt(3 * index), labelAt(3 * index + 1), labelAt(3 * index + 2));
      }
      statement.run(values, { key, kind });
    };
    const single = records.length % ROWS_TOGETHER;
    for (let next = 0; next < single; next += 1) upsert(statements.upsertRecord, next, next + 1);
    for (let next = single; next < records.length; next += ROWS_TOGETHER) {
      upsert(statements.upsertRecords, next, next + ROWS_TOGETHER);
    }
  }

  function addTransition(
    key: number,
    kind: Kind,
    transition: Transition,
    at: number,
  ): CommittedTransition {
    const { id, name, from, to } = transition;
    const row = [key, at, kind, from, to, id, name ?? null];
    const transitionId = Number(statements.insertTransition.run(row).lastInsertRowid);
    if (kind === 'prompt' && to === 'FAILED') statements.insertFailure.run(transitionId, key);
    return { ...transition, transitionId, kind };
  }

  /** Returns the number of its finish, if it finishes. */
  function commitExperiment(
    key: number,
    { name, finishes, ...experiment }: NextExperiment,
    at: number,
  ): readonly number[] {
    const [label = 0] = findLabels(key, [name]);
    const row = { key, label, at, ...toOwnExperimentColumns(experiment) };
    statements.upsertExperiment.run(row);
    return finishes ? [Number(statements.insertFinish.run(row).lastInsertRowid)] : [];
  }

  return commit;
}

function prepare(db: Connection) {
  return {
    projectKey: db
      .prepare<[id: string], number>('SELECT project_key FROM project WHERE id = ?')
      .pluck(),
    // Without listings it changes only the health, whoever has committed since.
    updateProject: db.prepare(
      forSqlite(`UPDATE project SET token = iif(:isListed, gen_random_uuid(), token),
         prompts = coalesce(:prompts, prompts), datasets = coalesce(:datasets, datasets),
         up = :up, consecutive_failures = :consecutive_failures, reason = :reason,
         last_poll_at = :last_poll_at, last_success_at = :last_success_at, steady_since = :steady_since
       WHERE project_key = :key AND (token = :token OR NOT :isListed)`),
    ),
    label: db
      .prepare<[key: number, text: string], number>(
        'SELECT label_id FROM label WHERE project_key = ? AND text = ?',
      )
      .pluck(),
    insertLabel: db.prepare('INSERT INTO label (project_key, text) VALUES (?, ?)'),
    upsertRecord: db.prepare(upsertOf(1)),
    upsertRecords: db.prepare(upsertOf(ROWS_TOGETHER)),
    addDurations: db.prepare(
      `INSERT INTO prompt_duration (project_key, status, day, bucket, count)
       VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (project_key, status, day, bucket) DO UPDATE SET count = count + excluded.count`,
    ),
    insertTransition: db.prepare<readonly unknown[]>(
      `INSERT INTO transition (project_key, at, kind, from_status, to_status, record_id, record_name)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
    ),
    upsertExperiment: db.prepare(
      `INSERT OR REPLACE INTO experiment
         (project_key, label_id, pending, running, completed, failed, unknown,
          started_at, moved_at, ended_at, finished_at)
       VALUES (:key, :label, :pending, :running, :completed, :failed, :unknown,
          :started_at, :moved_at, :ended_at, :finished_at)`,
    ),
    insertFinish: db.prepare(
      `INSERT INTO finish
         (project_key, label_id, at, completed, failed, unknown, started_at, ended_at)
       VALUES (:key, :label, :at, :completed, :failed, :unknown, :started_at, :ended_at)`,
    ),
    insertFailure: db.prepare('INSERT INTO failure (transition_id, project_key) VALUES (?, ?)'),
  };
}

function upsertOf(rows: number): string {
  const values = Array.from(
    { length: rows },
    () => '(:key, :kind, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
  );
  return `INSERT INTO record
      (project_key, kind, id, status, status_raw, name, timestamp, since, missing, gone,
       experiment, dataset, metric)
    VALUES ${values.join(', ')}
    ON CONFLICT (project_key, kind, id) DO UPDATE SET
      status = excluded.status, status_raw = excluded.status_raw, name = excluded.name,
      timestamp = excluded.timestamp, since = excluded.since, missing = excluded.missing,
      gone = excluded.gone, experiment = excluded.experiment, dataset = excluded.dataset,
      metric = excluded.metric`;
}
