import type { KnownRecord } from '../../../domain/record.ts';
import type { Kind } from '../../../domain/status.ts';
import type { KnownProject } from '../../../monitor/ports/store.ts';
import { type RecordColumns, toKnownRecord, unknownProject } from '../../rows.ts';
import type { Connection } from '../connection.ts';
import { PART_ROWS } from './poll-rows.ts';

/** Restricts a kind to these record ids; kinds without an entry are loaded whole. */
type OnlyThese = ReadonlyMap<Kind, readonly string[]>;

interface Known<Listing> {
  /** The text of the project's version. */
  readonly token: string;
  readonly listings: readonly (Listing & { readonly kind: Kind; readonly baselined: boolean })[];
}

/** Reads up to `max` further rows of a listing; fewer at its end. */
type NextRows = (max: number) => readonly RecordColumns[];

/** The known records of a project, yet to be read. A commit in between can show in them; the version then differs. */
type KnownRows = Known<{ readonly next: NextRows }>;

/** A page of known records: every listing with some of its rows. */
export interface KnownPage extends Known<{ readonly rows: readonly RecordColumns[] }> {
  /** Number by which the next page is requested; undefined on the last page. */
  readonly more: number | undefined;
}

const SELECT_RECORDS =
  'SELECT id, status, status_raw, name, timestamp, since, missing, gone FROM record';

/** Creates `Store.loadKnown`, still in rows. */
export function createKnownRows(
  db: Connection,
): (project: string, kinds: readonly Kind[], only?: OnlyThese) => KnownRows {
  const selectProject = db.prepare<
    [id: string],
    { readonly project_key: number; readonly version: number }
  >('SELECT project_key, version FROM project WHERE id = ?');
  const selectListing = db.prepare<
    [projectKey: number, kind: Kind],
    { readonly listing_key: number; readonly baselined: number }
  >('SELECT listing_key, baselined FROM listing WHERE project_key = ? AND kind = ?');
  const selectAfter = db
    .prepare<[listingKey: number, id: string, max: number], RecordColumns>(
      `${SELECT_RECORDS} WHERE listing_key = ? AND id > ? ORDER BY id LIMIT ?`,
    )
    .raw();
  const selectRecord = db
    .prepare<[listingKey: number, id: string], RecordColumns>(
      `${SELECT_RECORDS} WHERE listing_key = ? AND id = ?`,
    )
    .raw();

  function allRecords(key: number): NextRows {
    let last = '';
    return (max) => {
      const rows = selectAfter.all(key, last, max);
      last = rows.at(-1)?.[0] ?? last;
      return rows;
    };
  }

  function recordsOf(key: number, ids: readonly string[]): NextRows {
    let read = 0;
    return (max) => {
      const rows: RecordColumns[] = [];
      for (; read < ids.length && rows.length < max; read += 1) {
        const row = selectRecord.get(key, ids[read] ?? '');
        if (row !== undefined) rows.push(row);
      }
      return rows;
    };
  }

  return (project, kinds, only) => {
    // Reads the version first: if another commit comes in between, it is too old and the commit of this poll is refused.
    const known = selectProject.get(project);
    if (known === undefined) throw unknownProject(project);
    const listings = kinds.map((kind) => {
      const listing = selectListing.get(known.project_key, kind);
      if (listing === undefined) return { kind, baselined: false, next: () => [] };
      const key = listing.listing_key;
      const ids = only?.get(kind);
      const next = ids === undefined ? allRecords(key) : recordsOf(key, ids);
      return { kind, baselined: listing.baselined === 1, next };
    });
    return { token: String(known.version), listings };
  };
}

export interface KnownPages {
  readonly first: (known: KnownRows) => KnownPage;
  /** Returns the page after the one with this `more`. */
  readonly next: (more: number) => KnownPage;
}

/** Deals known records out in pages, so that a large project needs the memory and the time of one page at once. */
export function createKnownPages(): KnownPages {
  const unfinished = new Map<number, KnownRows>();
  let last = 0;

  function next(number: number): KnownPage {
    const known = unfinished.get(number);
    if (known === undefined) throw new Error(`there is no page ${number}`);
    // Forgotten before it is read: nobody asks again after a read that failed.
    unfinished.delete(number);
    const listings = known.listings.map((listing) => {
      const { kind, baselined } = listing;
      return { kind, baselined, rows: listing.next(PART_ROWS) };
    });
    const isLast = listings.every(({ rows }) => rows.length < PART_ROWS);
    if (!isLast) unfinished.set(number, known);
    return { token: known.token, listings, more: isLast ? undefined : number };
  }

  return {
    first: (known) => {
      last += 1;
      unfinished.set(last, known);
      return next(last);
    },
    next,
  };
}

/** Joins pages; `next` reads another one. */
export async function collectPages(
  first: KnownPage,
  next: (more: number) => Promise<KnownPage>,
): Promise<KnownProject> {
  const listings = first.listings.map(({ kind, baselined }) => {
    return [kind, { baselined, records: new Map<string, KnownRecord>() }] as const;
  });
  const known = { token: first.token, listings: new Map(listings) };
  for (let page = first; ;) {
    for (const { kind, rows } of page.listings) {
      const records = known.listings.get(kind)?.records;
      for (const row of rows) records?.set(row[0], toKnownRecord(row));
    }
    if (page.more === undefined) return known;
    page = await next(page.more);
  }
}
