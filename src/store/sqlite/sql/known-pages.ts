import type { KnownRecord } from '../../../domain/record.ts';
import type { Kind } from '../../../domain/status.ts';
import type { KnownProject } from '../../../monitor/ports/store.ts';
import { PART_ROWS, toKnownRecord, type RecordRow } from './poll-rows.ts';

interface Known<Listing> {
  readonly version: number;
  readonly listings: readonly (Listing & { readonly kind: Kind; readonly baselined: boolean })[];
}

/**
 * What is known of a project. `next` reads further rows of a listing, so many at most; fewer if there are no more. What is
 * committed in between can show in them; the version then differs.
 */
export type KnownRows = Known<{ readonly next: (most: number) => readonly RecordRow[] }>;

/** A page of it: all listings, with some of their rows. */
export interface KnownPage extends Known<{ readonly rows: readonly RecordRow[] }> {
  /** By this number there is more to be had. */
  readonly more: number | undefined;
}

export interface KnownPages {
  first(known: KnownRows): KnownPage;
  /** The page after the one that had this number. */
  next(more: number): KnownPage;
}

/** Reads known records page by page, so that a large project needs the memory and the time of one page at once. */
export function createKnownPages(): KnownPages {
  const dealing = new Map<number, KnownRows>();
  let last = 0;

  function next(number: number): KnownPage {
    const known = dealing.get(number);
    if (known === undefined) throw new Error('there is no such page');
    const listings = known.listings.map((listing) => {
      const { kind, baselined } = listing;
      return { kind, baselined, rows: listing.next(PART_ROWS) };
    });
    const isLast = listings.every(({ rows }) => rows.length < PART_ROWS);
    if (isLast) dealing.delete(number);
    return { version: known.version, listings, more: isLast ? undefined : number };
  }

  return {
    first: (known) => {
      last += 1;
      dealing.set(last, known);
      return next(last);
    },
    next,
  };
}

/** Puts together what comes in pages; `next` asks for another one. */
export async function collectPages(
  first: KnownPage,
  next: (more: number) => Promise<KnownPage>,
): Promise<KnownProject> {
  const listings = first.listings.map(({ kind, baselined }) => {
    return [kind, { baselined, records: new Map<string, KnownRecord>() }] as const;
  });
  const known = { version: first.version, listings: new Map(listings) };
  for (let page = first; ;) {
    for (const { kind, rows } of page.listings) {
      const records = known.listings.get(kind)?.records;
      for (const row of rows) records?.set(row[0], toKnownRecord(row));
    }
    if (page.more === undefined) return known;
    page = await next(page.more);
  }
}
