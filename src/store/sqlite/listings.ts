import type { ListingNews } from './sql/listing-changes.ts';
import type { ListingSnapshots } from './sql/snapshot.ts';

/** The listings of all configured projects as the last commits left them, kept for snapshots. */
export interface Listings {
  /** Empty for a project without a commit. */
  readonly of: (project: string) => ListingSnapshots;
  readonly update: (news: readonly ListingNews[]) => void;
}

export function createListings(): Listings {
  const listings = new Map<string, ListingSnapshots>();

  /** Makes new objects: those that snapshots have returned never change. */
  function afterNews(news: ListingNews): ListingSnapshots {
    if ('listings' in news) return news.listings;
    const before = listings.get(news.project) ?? new Map();
    return new Map(
      Array.from(before, ([kind, listing]) => {
        return [kind, { ...listing, errors: news.errors.get(kind) ?? [] }];
      }),
    );
  }

  return {
    of: (project) => listings.get(project) ?? new Map(),
    update: (news) => {
      for (const each of news) listings.set(each.project, afterNews(each));
    },
  };
}
