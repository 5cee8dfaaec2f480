import type { KnownListing, KnownRecord, Listing, ObservedRecord } from './record.ts';
import type { Origin, Status } from './status.ts';
import { inTurns } from './turns.ts';

/** A record's move from one status to another. */
export interface Transition {
  readonly id: string;
  readonly name: string | undefined;
  readonly from: Origin;
  readonly to: Status;
  /** How long the record was in `from`, ms, never negative; undefined from `NEW`. */
  readonly heldMs: number | undefined;
  /** Whether the last complete listing lacked the record. */
  readonly wasMissing?: boolean;
}

/** Changes that one listing makes, committed as a whole. */
export interface Changes {
  /** Whether this is the first listing of its kind: its statuses are stored without transitions. */
  readonly baseline: boolean;
  /** New state of every record that differs from the stored one. */
  readonly records: readonly KnownRecord[];
  readonly transitions: readonly Transition[];
  /** Records that became gone with this listing. */
  readonly gone: readonly KnownRecord[];
}

/** Time of a listing, and the limit for records that are missing from it. */
export interface DetectionOptions {
  /** Time of the poll, epoch ms. Becomes `since` of each record whose status changed. */
  readonly at: number;
  /** Complete listings in a row without a record before it is gone; 1 or more. */
  readonly missingAfter: number;
}

/** What a listing makes of the stored records. */
export interface Detected {
  readonly changes: Changes;
  /** Ids of the records that the listing lacks and that are not gone once the changes are committed. */
  readonly missing: readonly string[];
}

/**
 * Compares a listing with the stored records (docs/specification.md#transitions). Pure. No other code decides what
 * counts as a transition.
 */
export async function compareListing(
  known: KnownListing,
  listing: Listing,
  { at, missingAfter }: DetectionOptions,
): Promise<Detected> {
  const records: KnownRecord[] = [];
  const transitions: Transition[] = [];
  await inTurns(listing.records.values(), (observed) => {
    const before = known.records.get(observed.id);
    const moved = before?.status !== observed.status;
    if (moved && known.baselined) transitions.push(transition(before, observed, at));
    if (before === undefined || moved || differs(before, observed)) {
      const since = before === undefined || moved ? at : before.since;
      records.push({ ...observed, since, missing: 0, gone: false });
    }
  });
  await inTurns(listing.idsWithoutStatus, (id) => {
    const before = known.records.get(id);
    if (before !== undefined && !listing.records.has(id) && (before.missing > 0 || before.gone)) {
      records.push({ ...before, missing: 0, gone: false });
    }
  });
  const isAbsent = ({ id }: KnownRecord) =>
    !listing.records.has(id) && !listing.idsWithoutStatus.has(id);
  const absent = await countAbsent(known, isAbsent, listing.complete, missingAfter);
  const changes = {
    baseline: !known.baselined,
    records: records.concat(absent.counted),
    transitions,
    gone: absent.gone,
  };
  return { changes, missing: absent.missing };
}

/**
 * Does the same for an unchanged listing that is complete: the `missing` count of each record that it lacks increases by one
 * (docs/specification.md#unchanged-listings).
 * @param absent the stored records that the last listing lacked
 */
export async function compareUnchanged(
  absent: KnownListing,
  missingAfter: number,
): Promise<Detected> {
  const { counted, gone, missing } = await countAbsent(absent, () => true, true, missingAfter);
  return { changes: { baseline: false, records: counted, transitions: [], gone }, missing };
}

/** Counts one more listing for each absent record if the listing is complete, and decides which of them are gone by it. */
async function countAbsent(
  known: KnownListing,
  isAbsent: (record: KnownRecord) => boolean,
  complete: boolean,
  missingAfter: number,
) {
  const counted: KnownRecord[] = [];
  const gone: KnownRecord[] = [];
  const missing: string[] = [];
  await inTurns(known.records.values(), (before) => {
    if (before.gone || !isAbsent(before)) return;
    if (!complete) {
      missing.push(before.id);
      return;
    }
    const count = before.missing + 1;
    const record = { ...before, missing: count, gone: count >= missingAfter };
    counted.push(record);
    if (record.gone) gone.push(record);
    else missing.push(record.id);
  });
  return { counted, gone, missing };
}

function transition(
  before: KnownRecord | undefined,
  observed: ObservedRecord,
  at: number,
): Transition {
  return {
    id: observed.id,
    name: observed.name,
    from: before?.status ?? 'NEW',
    to: observed.status,
    heldMs: before === undefined ? undefined : Math.max(0, at - before.since),
    ...(before !== undefined && before.missing > 0 && { wasMissing: true }),
  };
}

function differs(before: KnownRecord, observed: ObservedRecord): boolean {
  return (
    before.gone ||
    before.missing > 0 ||
    before.statusRaw !== observed.statusRaw ||
    before.name !== observed.name ||
    before.timestamp !== observed.timestamp
  );
}
