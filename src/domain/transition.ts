import { ExperimentChanges } from './experiment.ts';
import type { KnownListing, KnownRecord, Listing, ObservedRecord } from './record.ts';
import type { Origin, Status } from './status.ts';
import { SummaryChange } from './summary.ts';
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
  readonly summary: SummaryChange;
  readonly experiments: ExperimentChanges;
  /** Whether the listing was complete. */
  readonly complete: boolean;
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

/** Changes as a comparison finds them. */
class FoundChanges implements Changes {
  readonly baseline: boolean;
  readonly records: KnownRecord[] = [];
  readonly transitions: Transition[] = [];
  readonly gone: KnownRecord[] = [];
  readonly summary = new SummaryChange();
  readonly experiments = new ExperimentChanges();
  readonly complete: boolean;

  constructor(baseline: boolean, complete: boolean) {
    this.baseline = baseline;
    this.complete = complete;
  }

  add(before: KnownRecord | undefined, record: KnownRecord): void {
    this.records.push(record);
    if (record.gone) this.gone.push(record);
    this.summary.addRecord(before, record);
    this.experiments.addRecord(before, record);
  }

  addTransition(
    before: KnownRecord | undefined,
    { id, name, experiment, status: to }: ObservedRecord,
    at: number,
  ): void {
    const from = before?.status ?? 'NEW';
    const heldMs = before === undefined ? undefined : Math.max(0, at - before.since);
    const wasMissing = before !== undefined && before.missing > 0;
    this.transitions.push({ id, name, from, to, heldMs, ...(wasMissing && { wasMissing }) });
    this.summary.addTransition(from, to);
    this.experiments.addTransition(experiment, from, to);
  }
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
  const changes = new FoundChanges(!known.baselined, listing.complete);
  await inTurns(listing.records.values(), (observed) => {
    const before = known.records.get(observed.id);
    const moved = before?.status !== observed.status;
    if (moved && known.baselined) changes.addTransition(before, observed, at);
    if (before === undefined || moved || differs(before, observed)) {
      const since = before === undefined || moved ? at : before.since;
      changes.add(before, { ...observed, since, missing: 0, gone: false });
    }
  });
  await inTurns(listing.idsWithoutStatus, (id) => {
    const before = known.records.get(id);
    if (before !== undefined && !listing.records.has(id) && (before.missing > 0 || before.gone)) {
      changes.add(before, { ...before, missing: 0, gone: false });
    }
  });
  const missing: string[] = [];
  await inTurns(known.records.values(), (before) => {
    const { id, gone } = before;
    if (gone || listing.records.has(id) || listing.idsWithoutStatus.has(id)) return;
    if (!listing.complete) {
      missing.push(before.id);
      return;
    }
    const count = before.missing + 1;
    const record = { ...before, missing: count, gone: count >= missingAfter };
    changes.add(before, record);
    if (!record.gone) missing.push(record.id);
  });
  return { changes, missing };
}

function differs(before: KnownRecord, observed: ObservedRecord): boolean {
  return (
    before.gone ||
    before.missing > 0 ||
    before.statusRaw !== observed.statusRaw ||
    before.name !== observed.name ||
    before.timestamp !== observed.timestamp ||
    before.experiment !== observed.experiment ||
    before.dataset !== observed.dataset ||
    before.metric !== observed.metric
  );
}
