import type { KnownRecord } from '../domain/record.ts';
import type { Kind } from '../domain/status.ts';
import type { KnownProject } from '../monitor/ports.ts';
import { PART_ROWS, toKnownRecord, type RecordRow } from './poll-rows.ts';

/** What is known of a project, as it comes out of its tables. */
export interface KnownRows {
  readonly version: number;
  readonly listings: readonly {
    readonly kind: Kind;
    readonly baselined: boolean;
    readonly rows: readonly RecordRow[];
  }[];
}

/** A page of it: all listings, with some of their rows. */
export interface KnownPage extends KnownRows {
  /** By this number there is more to be had. */
  readonly more: number | undefined;
}

export interface KnownPages {
  first(known: KnownRows): KnownPage;
  /** The page after the one that had this number. */
  next(more: number): KnownPage;
}

/** Deals out what is known in pages, so that a large project holds up nobody for long. */
export function createKnownPages(): KnownPages {
  const dealing = new Map<number, { readonly known: KnownRows; start: number }>();
  let last = 0;

  function next(number: number): KnownPage {
    const deal = dealing.get(number);
    if (deal === undefined) throw new Error('there is no such page');
    const { known, start } = deal;
    deal.start += PART_ROWS;
    const listings = known.listings.map((listing) => ({
      ...listing,
      rows: listing.rows.slice(start, deal.start),
    }));
    const isLast = known.listings.every(({ rows }) => rows.length <= deal.start);
    if (isLast) dealing.delete(number);
    return { ...known, listings, more: isLast ? undefined : number };
  }

  return {
    first: (known) => {
      last += 1;
      dealing.set(last, { known, start: 0 });
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
    // oxlint-disable-next-line no-await-in-loop -- one page at a time
    page = await next(page.more);
  }
}
