import type { Kind } from '../../../domain/status.ts';
import { type RecordColumns, unknownProject } from '../../rows.ts';
import type { Connection } from '../connection.ts';
import { PART_ROWS } from './poll-rows.ts';

/** Asks for records of a listing: those with these ids, or up to a page of those after an id. */
export interface KnownRequest {
  readonly kind: Kind;
  readonly from: { readonly ids: readonly string[] } | { readonly after: string };
}

/** Known records of a project. */
export interface KnownPage {
  /** The text of the project's version. */
  readonly token: string;
  /** One for each request. */
  readonly listings: readonly {
    readonly kind: Kind;
    readonly baselined: boolean;
    readonly rows: readonly RecordColumns[];
  }[];
}

const SELECT_RECORDS =
  'SELECT id, status, status_raw, name, timestamp, since, missing, gone FROM record';

/** Creates the function that reads a page of known records. It throws a StoreError for a project that is not in the store. */
export function createKnownPages(
  db: Connection,
): (project: string, requests: readonly KnownRequest[]) => KnownPage {
  const selectVersion = db
    .prepare<[id: string], number>('SELECT version FROM project WHERE id = ?')
    .pluck();
  const selectListing = db.prepare<
    [project: string, kind: Kind],
    { readonly listing_key: number; readonly baselined: number }
  >(
    `SELECT l.listing_key, l.baselined
     FROM project p JOIN listing l ON l.project_key = p.project_key WHERE p.id = ? AND l.kind = ?`,
  );
  const selectAfter = db
    .prepare<[listingKey: number, id: string], RecordColumns>(
      `${SELECT_RECORDS} WHERE listing_key = ? AND id > ? ORDER BY id LIMIT ${PART_ROWS}`,
    )
    .raw();
  const selectRecord = db
    .prepare<[listingKey: number, id: string], RecordColumns>(
      `${SELECT_RECORDS} WHERE listing_key = ? AND id = ?`,
    )
    .raw();

  function rowsOf(key: number, from: KnownRequest['from']): readonly RecordColumns[] {
    if ('after' in from) return selectAfter.all(key, from.after);
    return from.ids.flatMap((id) => {
      const row = selectRecord.get(key, id);
      return row === undefined ? [] : [row];
    });
  }

  return (project, requests) => {
    // Reads the version first: if another commit comes in between, it is too old and the commit of this poll is refused.
    const version = selectVersion.get(project);
    if (version === undefined) throw unknownProject(project);
    const listings = requests.map(({ kind, from }) => {
      const listing = selectListing.get(project, kind);
      return {
        kind,
        baselined: listing?.baselined === 1,
        rows: listing === undefined ? [] : rowsOf(listing.listing_key, from),
      };
    });
    return { token: String(version), listings };
  };
}
