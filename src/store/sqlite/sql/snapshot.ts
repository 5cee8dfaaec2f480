import {
  isUnfinished,
  KINDS,
  statusesOf,
  type Kind,
  type Origin,
  type Status,
  type UnfinishedStatus,
} from '../../../domain/status.ts';
import type {
  ListingSnapshot,
  ProjectSnapshot,
  StoreSnapshot,
} from '../../../monitor/ports/store.ts';
import { type ErrorTotalColumns, type HealthColumns, toErrorTotals, toHealth } from '../../rows.ts';
import type { Connection } from '../connection.ts';
import { HEALTH_COLUMNS } from './projects.ts';

type ListingSnapshots = ReadonlyMap<Kind, ListingSnapshot>;

/** A snapshot without the listings that have not changed since the last one. */
export interface SnapshotNews extends Omit<StoreSnapshot, 'projects'> {
  readonly projects: readonly (Omit<ProjectSnapshot, 'listings'> & {
    readonly listings: ListingSnapshots | undefined;
  })[];
}

/**
 * Creates a function that reads all configured projects at one moment, and counts the listings of those that are not in
 * `counted`.
 */
export function createSnapshotReader(
  db: Connection,
): (counted: ReadonlySet<string>) => SnapshotNews {
  const projects = db.prepare<[], ProjectRow>(
    `SELECT project_key, id, configured_at, ${HEALTH_COLUMNS}
     FROM project WHERE removed_at IS NULL ORDER BY id`,
  );
  const backlog = db.prepare<[], { readonly count: number; readonly oldest_at: number | null }>(
    `SELECT pending.count,
       (SELECT at FROM transition WHERE transition_id = pending.oldest) AS oldest_at
     FROM (SELECT count(*) AS count, min(transition_id) AS oldest
           FROM failure WHERE settled_at IS NULL) AS pending`,
  );
  const countListing = createListingCounter(db);
  const read = (counted: ReadonlySet<string>): SnapshotNews => {
    const pending = backlog.get();
    return {
      projects: projects.all().map((row) => ({
        project: row.id,
        configuredAt: row.configured_at,
        health: toHealth(row),
        listings: counted.has(row.id)
          ? undefined
          : new Map(KINDS.map((kind) => [kind, countListing(row.project_key, kind)])),
      })),
      backlog: { count: pending?.count ?? 0, oldestAt: pending?.oldest_at ?? undefined },
    };
  };
  return db.transaction(read);
}

/** Number of projects in a page: if all have changed, the main thread takes two milliseconds to copy them. */
const PAGE_PROJECTS = 250;

/** Some of the projects of a snapshot. */
export interface SnapshotPage extends SnapshotNews {
  /** Number by which the next page is requested; undefined on the last page. */
  readonly more: number | undefined;
}

export interface SnapshotPages {
  readonly first: (news: SnapshotNews) => SnapshotPage;
  /** Returns the page after the one with this `more`. */
  readonly next: (more: number) => SnapshotPage;
}

/** Deals snapshots out in pages, so that the main thread copies few projects at once. */
export function createSnapshotPages(): SnapshotPages {
  const unfinished = new Map<number, SnapshotNews>();
  let last = 0;

  function next(number: number): SnapshotPage {
    const rest = unfinished.get(number);
    if (rest === undefined) throw new Error(`there is no page ${number}`);
    const { backlog, projects } = rest;
    const isLast = projects.length <= PAGE_PROJECTS;
    if (isLast) unfinished.delete(number);
    else unfinished.set(number, { backlog, projects: projects.slice(PAGE_PROJECTS) });
    return {
      backlog,
      projects: projects.slice(0, PAGE_PROJECTS),
      more: isLast ? undefined : number,
    };
  }

  return {
    first: (news) => {
      last += 1;
      unfinished.set(last, news);
      return next(last);
    },
    next,
  };
}

/** Completes a snapshot with the listings of earlier ones, and updates these. Pass an empty map with the first snapshot. */
export function completeSnapshot(
  { projects, backlog }: SnapshotNews,
  listings: Map<string, ListingSnapshots>,
): StoreSnapshot {
  for (const { project, listings: counted } of projects) {
    if (counted !== undefined) listings.set(project, counted);
  }
  return {
    projects: projects.map((each) => ({
      ...each,
      listings: listings.get(each.project) ?? new Map(),
    })),
    backlog,
  };
}

interface ProjectRow extends HealthColumns {
  readonly project_key: number;
  readonly id: string;
  readonly configured_at: number;
}

interface ListingRow {
  readonly listing_key: number;
  readonly gone_total: number;
  readonly last_failure_at: number | null;
}

interface StatusCount {
  readonly status: Status;
  readonly count: number;
  readonly missing: number;
  readonly oldest: number;
}

function createListingCounter(db: Connection): (projectKey: number, kind: Kind) => ListingSnapshot {
  const findListing = db.prepare<[projectKey: number, kind: Kind], ListingRow>(
    'SELECT listing_key, gone_total, last_failure_at FROM listing WHERE project_key = ? AND kind = ?',
  );
  const countStatuses = db.prepare<[listingKey: number], StatusCount>(
    `SELECT status, count(*) AS count, sum(missing > 0) AS missing, min(since) AS oldest
     FROM record WHERE listing_key = ? AND gone = 0 GROUP BY status`,
  );
  const totals = db
    .prepare<[listingKey: number], readonly [Origin, Status, number]>(
      'SELECT from_status, to_status, count FROM transition_total WHERE listing_key = ?',
    )
    .raw();
  const errors = db
    .prepare<[listingKey: number], ErrorTotalColumns>(
      'SELECT label, count, first_seen_at FROM error_total WHERE listing_key = ? ORDER BY label',
    )
    .raw();

  return (projectKey, kind) => {
    const listing = findListing.get(projectKey, kind);
    const rows = listing === undefined ? [] : countStatuses.all(listing.listing_key);
    const counts = new Map(statusesOf(kind).map((status) => [status, 0]));
    const oldest = new Map<UnfinishedStatus, number>();
    let missing = 0;
    for (const row of rows) {
      counts.set(row.status, row.count);
      if (isUnfinished(row.status)) oldest.set(row.status, row.oldest);
      missing += row.missing;
    }
    return {
      counts,
      missing,
      goneTotal: listing?.gone_total ?? 0,
      transitions: listing === undefined ? [] : totals.all(listing.listing_key),
      lastFailureAt: listing?.last_failure_at ?? undefined,
      oldest,
      errors: listing === undefined ? [] : toErrorTotals(errors.all(listing.listing_key)),
    };
  };
}
