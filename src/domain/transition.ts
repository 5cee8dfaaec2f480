import type { KnownListing, KnownRecord, Listing, ObservedRecord } from './record.ts';
import type { Origin, Status } from './status.ts';
import { ITEMS_PER_STEP, type Steps } from './steps.ts';

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

/**
 * Compares a listing with the stored records (docs/specification.md#transitions). Pure. No other code decides what
 * counts as a transition.
 */
export function* compareListing(
  known: KnownListing,
  listing: Listing,
  options: DetectionOptions,
): Steps<Changes> {
  const records: KnownRecord[] = [];
  const transitions: Transition[] = [];
  let compared = 0;
  for (const observed of listing.records.values()) {
    compared += 1;
    if (compared % ITEMS_PER_STEP === 0) yield;
    const before = known.records.get(observed.id);
    const moved = before?.status !== observed.status;
    if (moved && known.baselined) {
      transitions.push(transition(before, observed, options.at));
    }
    if (before === undefined || moved || differs(before, observed)) {
      const since = before === undefined || moved ? options.at : before.since;
      records.push({ ...observed, since, missing: 0, gone: false });
    }
  }
  for (const id of listing.idsWithoutStatus) {
    compared += 1;
    if (compared % ITEMS_PER_STEP === 0) yield;
    const before = known.records.get(id);
    if (before !== undefined && !listing.records.has(id) && (before.missing > 0 || before.gone)) {
      records.push({ ...before, missing: 0, gone: false });
    }
  }
  const isAbsent = ({ id }: KnownRecord) =>
    !listing.records.has(id) && !listing.idsWithoutStatus.has(id);
  const absent = listing.complete ? yield* countMissing(known, isAbsent, options.missingAfter) : [];
  return toChanges(!known.baselined, records.concat(absent), transitions);
}

/**
 * Returns the changes to store after an unchanged listing: the `missing` count of each missing record increases by one
 * (docs/specification.md#unchanged-listings). `complete` is the value of the last listing that was read.
 */
export function* detectRepeatedAbsence(
  known: KnownListing,
  complete: boolean,
  missingAfter: number,
): Steps<Changes> {
  const isAbsent = ({ missing }: KnownRecord) => missing > 0;
  const absent = complete ? yield* countMissing(known, isAbsent, missingAfter) : [];
  return toChanges(false, absent, []);
}

/** Returns the ids of the records that are missing but not gone once these changes are committed. */
export function* missingIds(known: KnownListing, changes: Changes): Steps<readonly string[]> {
  const missing = new Set<string>();
  let checked = 0;
  for (const records of [known.records.values(), changes.records]) {
    for (const record of records) {
      checked += 1;
      if (checked % ITEMS_PER_STEP === 0) yield;
      if (isMissing(record)) missing.add(record.id);
      else missing.delete(record.id);
    }
  }
  return [...missing];
}

function isMissing(record: KnownRecord): boolean {
  return record.missing > 0 && !record.gone;
}

function toChanges(
  baseline: boolean,
  records: readonly KnownRecord[],
  transitions: readonly Transition[],
): Changes {
  return { baseline, records, transitions, gone: records.filter((record) => record.gone) };
}

/** Counts one more listing for each absent record, and decides which of them are gone by it. */
function* countMissing(
  known: KnownListing,
  isAbsent: (record: KnownRecord) => boolean,
  missingAfter: number,
): Steps<readonly KnownRecord[]> {
  const absent: KnownRecord[] = [];
  let checked = 0;
  for (const record of known.records.values()) {
    checked += 1;
    if (checked % ITEMS_PER_STEP === 0) yield;
    if (record.gone || !isAbsent(record)) continue;
    const missing = record.missing + 1;
    absent.push({ ...record, missing, gone: missing >= missingAfter });
  }
  return absent;
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
