import type { Kind } from '../../../domain/status.ts';
import type { Transition } from '../../../domain/transition.ts';
import type { CommittedTransition } from '../../../monitor/ports/store.ts';
import { type RecordColumns, toHealthColumns, unknownProject } from '../../rows.ts';
import type { Connection } from '../connection.ts';
import type { HealthRow, ListingRows, PollPart } from './poll-rows.ts';

/** Rows of one insert statement: each then takes two thirds of the time of one in a statement by itself. */
const ROWS_TOGETHER = 20;

/** Commits of polls, to be run in a transaction. */
interface PollCommits {
  /** `Store.commitPoll` for a part of a poll. */
  readonly commit: (part: PollPart) => readonly CommittedTransition[] | undefined;
  /** Writes the health of polls that changed nothing. Skips a project that was deleted. */
  readonly writeHealth: (rows: readonly HealthRow[]) => void;
}

export function createPollCommit(db: Connection): PollCommits {
  const statements = prepare(db);

  function commit(part: PollPart): readonly CommittedTransition[] | undefined {
    const projectKey = part.isContinued ? findProject(part.project) : updateProject(part);
    if (projectKey === undefined) return undefined;
    return part.listings.flatMap((changes) => commitListing(projectKey, changes, part.at));
  }

  function findProject(project: string): number {
    const key = statements.projectKey.get(project);
    if (key === undefined) throw unknownProject(project);
    return key;
  }

  /** Returns the key of the project; undefined if another commit came first. */
  function updateProject({ project, health, token, listings }: PollPart): number | undefined {
    const row = { project, ...toHealthColumns(health) };
    const key = updateHealth(row, {
      version: Number(token),
      increment: listings.length > 0 ? 1 : 0,
    });
    if (key === undefined) findProject(project);
    return key;
  }

  function updateHealth(row: HealthRow, { version, increment }: VersionUpdate): number | undefined {
    return statements.updateProject.get({ ...row, up: Number(row.up), version, increment });
  }

  function commitListing(
    projectKey: number,
    changes: ListingRows,
    at: number,
  ): readonly CommittedTransition[] {
    const { kind, baseline, records, transitions, gone, durations } = changes;
    const failed = transitions.some(({ to }) => to === 'FAILED');
    const listing = statements.upsertListing.get({
      projectKey,
      kind,
      baselined: Number(baseline),
      gone,
      lastFailureAt: failed ? at : null,
    });
    if (listing === undefined) throw new Error('no listing after its upsert');
    const key = listing.listing_key;
    upsertRecords(key, records);
    addTotals(key, transitions);
    for (const { status, day, bucket, count } of durations) {
      statements.addDurations.run(key, status, day, bucket, count);
    }
    return transitions.map((transition) => addTransition(key, kind, transition, at));
  }

  function upsertRecords(key: number, records: readonly RecordColumns[]): void {
    const single = records.length % ROWS_TOGETHER;
    for (const record of records.slice(0, single)) statements.upsertRecord.run(key, ...record);
    for (let start = single; start < records.length; start += ROWS_TOGETHER) {
      const some = records.slice(start, start + ROWS_TOGETHER);
      statements.upsertRecords.run(some.flatMap((record) => [key, ...record]));
    }
  }

  function addTotals(key: number, transitions: readonly Transition[]): void {
    const pairs = Map.groupBy(transitions, ({ from, to }) => `${from} ${to}`);
    for (const [first, ...others] of pairs.values()) {
      if (first === undefined) continue;
      statements.addTotal.run(key, first.from, first.to, 1 + others.length);
    }
  }

  function addTransition(
    key: number,
    kind: Kind,
    transition: Transition,
    at: number,
  ): CommittedTransition {
    const { id, name, from, to } = transition;
    const { lastInsertRowid } = statements.insertTransition.run(
      key,
      id,
      name ?? null,
      at,
      from,
      to,
    );
    const transitionId = Number(lastInsertRowid);
    if (kind === 'prompt' && to === 'FAILED') statements.insertFailure.run(transitionId, key);
    return { ...transition, transitionId, kind };
  }

  return {
    commit,
    writeHealth: (rows) => {
      for (const row of rows) updateHealth(row, { version: 0, increment: 0 });
    },
  };
}

interface VersionUpdate {
  /** Version that the project must have, unless `increment` is 0. */
  readonly version: number;
  readonly increment: 0 | 1;
}

interface ListingUpdate {
  readonly projectKey: number;
  readonly kind: Kind;
  readonly baselined: number;
  readonly gone: number;
  readonly lastFailureAt: number | null;
}

function prepare(db: Connection) {
  return {
    projectKey: db
      .prepare<[id: string], number>('SELECT project_key FROM project WHERE id = ?')
      .pluck(),
    updateProject: db
      .prepare<HealthRow & VersionUpdate, number>(
        `UPDATE project SET
           up = :up, consecutive_failures = :consecutive_failures, reason = :reason,
           last_poll_at = :last_poll_at, last_success_at = :last_success_at,
           steady_since = :steady_since, version = version + :increment
         WHERE id = :project AND (:increment = 0 OR version = :version)
         RETURNING project_key`,
      )
      .pluck(),
    upsertListing: db.prepare<ListingUpdate, { readonly listing_key: number }>(
      `INSERT INTO listing (project_key, kind, baselined, gone_total, last_failure_at)
       VALUES (:projectKey, :kind, :baselined, :gone, :lastFailureAt)
       ON CONFLICT (project_key, kind) DO UPDATE SET
         baselined = max(baselined, excluded.baselined),
         gone_total = gone_total + excluded.gone_total,
         last_failure_at = coalesce(excluded.last_failure_at, last_failure_at)
       RETURNING listing_key`,
    ),
    upsertRecord: db.prepare(upsertOf(1)),
    upsertRecords: db.prepare(upsertOf(ROWS_TOGETHER)),
    addTotal: db.prepare(
      `INSERT INTO transition_total (listing_key, from_status, to_status, count)
       VALUES (?, ?, ?, ?)
       ON CONFLICT (listing_key, from_status, to_status) DO UPDATE SET
         count = count + excluded.count`,
    ),
    addDurations: db.prepare(
      `INSERT INTO prompt_duration (listing_key, status, day, bucket, count)
       VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (listing_key, status, day, bucket) DO UPDATE SET count = count + excluded.count`,
    ),
    insertTransition: db.prepare(
      `INSERT INTO transition (listing_key, record_id, record_name, at, from_status, to_status)
       VALUES (?, ?, ?, ?, ?, ?)`,
    ),
    insertFailure: db.prepare('INSERT INTO failure (transition_id, listing_key) VALUES (?, ?)'),
  };
}

function upsertOf(rows: number): string {
  const values = Array.from({ length: rows }, () => '(?, ?, ?, ?, ?, ?, ?, ?, ?)');
  return `INSERT INTO record
      (listing_key, id, status, status_raw, name, timestamp, since, missing, gone)
    VALUES ${values.join(', ')}
    ON CONFLICT (listing_key, id) DO UPDATE SET
      status = excluded.status, status_raw = excluded.status_raw, name = excluded.name,
      timestamp = excluded.timestamp, since = excluded.since, missing = excluded.missing,
      gone = excluded.gone`;
}
