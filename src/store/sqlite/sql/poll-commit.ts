import type { Kind } from '../../../domain/status.ts';
import type { Transition } from '../../../domain/transition.ts';
import type { CommittedTransition } from '../../../monitor/ports/store.ts';
import type { Connection } from '../connection.ts';
import type { KnownRows } from './known-pages.ts';
import type { ListingRows, PollRows, RecordRow } from './poll-rows.ts';
import { unknownProject } from './projects.ts';

export interface PollCommits {
  /** As `Store.loadKnown`, still in rows. */
  load(project: string, kinds: readonly Kind[], only?: OnlyThese): KnownRows;
  /** As `Store.commitPoll`; to be run in a transaction. */
  commit(poll: PollRows): readonly CommittedTransition[] | undefined;
  /** Another part of the poll that `commit` has begun in this transaction. */
  commitMore(poll: PollRows): readonly CommittedTransition[];
}

/** Of a kind that is in it, just the records with these ids. */
type OnlyThese = ReadonlyMap<Kind, readonly string[]>;

const SELECT_RECORDS =
  'SELECT id, status, status_raw, name, timestamp, since, missing, gone FROM record';

type NextRows = KnownRows['listings'][number]['next'];

/** A row among so many in one statement costs two thirds of one by itself. */
const ROWS_TOGETHER = 20;

/** What a poll reads before it compares, and what it writes after it. */
export function createPollCommits(db: Connection): PollCommits {
  const statements = prepare(db);

  function load(project: string, kinds: readonly Kind[], only?: OnlyThese): KnownRows {
    // The version first: if somebody commits in between, it is too old, and the poll's commit finds out.
    const known = statements.version.get(project);
    if (known === undefined) throw unknownProject(project);
    const listings = kinds.map((kind) => {
      const listing = statements.listing.get(known.project_key, kind);
      if (listing === undefined) return { kind, baselined: false, next: () => [] };
      const key = listing.listing_key;
      const ids = only?.get(kind);
      const next = ids === undefined ? allRecords(key) : recordsOf(key, ids);
      return { kind, baselined: listing.baselined === 1, next };
    });
    return { version: known.version, listings };
  }

  function allRecords(key: number): NextRows {
    let last = '';
    return (most) => {
      const rows = statements.recordsAfter.all(key, last, most);
      last = rows.at(-1)?.[0] ?? last;
      return rows;
    };
  }

  function recordsOf(key: number, ids: readonly string[]): NextRows {
    let read = 0;
    return (most) => {
      const rows: RecordRow[] = [];
      for (; read < ids.length && rows.length < most; read += 1) {
        const row = statements.record.get(key, ids[read] ?? '');
        if (row !== undefined) rows.push(row);
      }
      return rows;
    };
  }

  function commit(poll: PollRows): readonly CommittedTransition[] | undefined {
    const { project, health, version, listings } = poll;
    const row = statements.updateProject.get({
      project,
      up: Number(health.up),
      failures: health.consecutiveFailures,
      reason: health.reason ?? null,
      lastPollAt: health.lastPollAt ?? null,
      lastSuccessAt: health.lastSuccessAt ?? null,
      version,
      increment: listings.length > 0 ? 1 : 0,
    });
    if (row === undefined) {
      if (statements.version.get(project) === undefined) throw unknownProject(project);
      return undefined;
    }
    return commitListings(row.project_key, poll);
  }

  function commitMore(poll: PollRows): readonly CommittedTransition[] {
    const known = statements.version.get(poll.project);
    if (known === undefined) throw unknownProject(poll.project);
    return commitListings(known.project_key, poll);
  }

  function commitListings(projectKey: number, { listings, at }: PollRows) {
    return listings.flatMap((changes) => commitListing(projectKey, changes, at));
  }

  function commitListing(
    projectKey: number,
    changes: ListingRows,
    at: number,
  ): readonly CommittedTransition[] {
    const { kind, baseline, records, transitions, gone } = changes;
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
    countTotals(key, transitions);
    return transitions.map((transition) => addTransition(key, kind, transition, at));
  }

  function upsertRecords(key: number, records: readonly RecordRow[]): void {
    const single = records.length % ROWS_TOGETHER;
    for (const record of records.slice(0, single)) statements.upsertRecord.run(key, ...record);
    for (let start = single; start < records.length; start += ROWS_TOGETHER) {
      const some = records.slice(start, start + ROWS_TOGETHER);
      statements.upsertRecords.run(some.flatMap((record) => [key, ...record]));
    }
  }

  function countTotals(key: number, transitions: readonly Transition[]): void {
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

  return { load, commit, commitMore };
}

interface ProjectUpdate {
  readonly project: string;
  readonly up: number;
  readonly failures: number;
  readonly reason: string | null;
  readonly lastPollAt: number | null;
  readonly lastSuccessAt: number | null;
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
    version: db.prepare<[id: string], { readonly project_key: number; readonly version: number }>(
      'SELECT project_key, version FROM project WHERE id = ?',
    ),
    listing: db.prepare<
      [projectKey: number, kind: Kind],
      { readonly listing_key: number; readonly baselined: number }
    >('SELECT listing_key, baselined FROM listing WHERE project_key = ? AND kind = ?'),
    recordsAfter: db
      .prepare<[listingKey: number, id: string, most: number], RecordRow>(
        `${SELECT_RECORDS} WHERE listing_key = ? AND id > ? ORDER BY id LIMIT ?`,
      )
      .raw(),
    record: db
      .prepare<[listingKey: number, id: string], RecordRow>(
        `${SELECT_RECORDS} WHERE listing_key = ? AND id = ?`,
      )
      .raw(),
    updateProject: db.prepare<ProjectUpdate, { readonly project_key: number }>(
      `UPDATE project SET
         up = :up, consecutive_failures = :failures, reason = :reason,
         last_poll_at = :lastPollAt, last_success_at = :lastSuccessAt, version = version + :increment
       WHERE id = :project AND (:increment = 0 OR version = :version)
       RETURNING project_key`,
    ),
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
