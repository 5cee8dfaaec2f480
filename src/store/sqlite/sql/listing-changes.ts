import type { ErrorTotal } from '../../../domain/failure.ts';
import type { Kind } from '../../../domain/status.ts';
import type { Connection } from '../connection.ts';
import { createListingReader, type ListingSnapshots } from './snapshot.ts';

/** The listings of a project as a transaction leaves them, or only their failures by error_id. */
export type ListingNews = { readonly project: string } & (
  | { readonly listings: ListingSnapshots }
  | { readonly errors: ReadonlyMap<Kind, readonly ErrorTotal[]> }
);

/** Projects whose listings the current transaction has changed. */
export interface ListingChanges {
  note(project: string, changed: 'listings' | 'errors'): void;
  /** Reads what has changed; to be run at the end of the transaction. */
  read(): readonly ListingNews[];
  /** Forgets the projects, when the transaction is over. */
  clear(): void;
}

/** Counts records when they are written: a scrape of ten large projects that have all changed would take too long. */
export function createListingChanges(db: Connection): ListingChanges {
  const listings = createListingReader(db);
  const noted = new Map<string, 'listings' | 'errors'>();
  return {
    note: (project, changed) => {
      if (noted.get(project) !== 'listings') noted.set(project, changed);
    },
    read: () =>
      Array.from(noted, ([project, changed]) =>
        changed === 'listings'
          ? { project, listings: listings.of(project) }
          : { project, errors: listings.errorsOf(project) },
      ),
    clear: () => noted.clear(),
  };
}
