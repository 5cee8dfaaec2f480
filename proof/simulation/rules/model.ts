// A second implementation of docs/specification.md#transitions, written from that page and not from the daemon's code.

/** What a client can read of a listing of prompts. */
export interface ServedListing {
  readonly project: string;
  readonly items: readonly Item[];
}

type Item = readonly [id: string, status: string, experiment: string | undefined];

/** State of the prompts of a project after some listings. */
export interface State {
  readonly baselined: boolean;
  readonly records: ReadonlyMap<string, RecordState>;
  /** Number of times that a record became gone. */
  readonly gone: number;
}

interface RecordState {
  readonly status: string;
  readonly missing: number;
  readonly gone: boolean;
}

export interface Move {
  readonly id: string;
  readonly from: string;
  readonly to: string;
}

export const UNKNOWING: State = { baselined: false, records: new Map(), gone: 0 };

/** Returns the moves that a daemon records for this listing, and its state from then on. */
export function takeNote(
  state: State,
  { items }: ServedListing,
  missingAfter: number,
): { readonly state: State; readonly moves: readonly Move[] } {
  const records = new Map(state.records);
  const moves: Move[] = [];
  let { gone } = state;
  for (const [id, status] of items) {
    const from = records.get(id)?.status ?? 'NEW';
    if (from !== status && state.baselined) moves.push({ id, from, to: status });
    records.set(id, { status, missing: 0, gone: false });
  }
  const listed = new Set(items.map(([id]) => id));
  for (const [id, record] of records) {
    if (listed.has(id) || record.gone) continue;
    const missing = record.missing + 1;
    const isGone = missing >= missingAfter;
    records.set(id, { ...record, missing, gone: isGone });
    if (isGone) gone += 1;
  }
  return { state: { baselined: true, records, gone }, moves };
}
