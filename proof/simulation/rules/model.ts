// A second implementation of docs/specification.md#transitions, written from that page and not from the daemon's code.

/** What a client can read of a listing of prompts. */
export interface ServedListing {
  readonly project: string;
  /** Id, status and experiment of each item as they are in the JSON, null if absent, in the order of the body. */
  readonly items: readonly (readonly [id: unknown, status: unknown, experiment?: unknown])[];
}

/** State of the prompts of a project after some listings. */
export interface State {
  readonly baselined: boolean;
  readonly last: Reading | undefined;
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

/** Content of a listing. */
interface Reading {
  readonly statuses: ReadonlyMap<string, string>;
  readonly present: ReadonlySet<string>;
  /** Whether every item had a usable id. */
  readonly complete: boolean;
}

export const UNKNOWING: State = { baselined: false, last: undefined, records: new Map(), gone: 0 };

const FOUR = new Set(['PENDING', 'RUNNING', 'COMPLETED', 'FAILED']);

/** Returns the moves that a daemon records for this listing, and its state from then on. */
export function takeNote(
  state: State,
  listing: ServedListing,
  missingAfter: number,
): { readonly state: State; readonly moves: readonly Move[] } {
  const reading = read(listing);
  // A poll fails if no item of its listing is usable.
  if (reading === undefined) return { state, moves: [] };
  let changed: Map<string, RecordState> | undefined;
  const records = () => changed ?? state.records;
  const put = (id: string, record: RecordState) => {
    const known = records().get(id);
    const { status, missing, gone } = record;
    if (known?.status === status && known.missing === missing && known.gone === gone) return;
    changed ??= new Map(state.records);
    changed.set(id, record);
  };
  const moves: Move[] = [];
  let { gone } = state;
  for (const [id, status] of reading.statuses) {
    const from = records().get(id)?.status ?? 'NEW';
    if (from !== status && state.baselined) moves.push({ id, from, to: status });
    put(id, { status, missing: 0, gone: false });
  }
  for (const [id, record] of records()) {
    if (reading.present.has(id)) {
      put(id, { ...record, missing: 0, gone: false });
    } else if (reading.complete && !record.gone) {
      const missing = record.missing + 1;
      const isGone = missing >= missingAfter;
      put(id, { ...record, missing, gone: isGone });
      if (isGone) gone += 1;
    }
  }
  return { state: { baselined: true, last: reading, records: records(), gone }, moves };
}

function read({ items }: ServedListing): Reading | undefined {
  const statuses = new Map<string, string>();
  const present = new Set<string>();
  let complete = true;
  for (const [id, status] of items) {
    if (typeof id !== 'string') {
      complete = false;
      continue;
    }
    present.add(id);
    if (typeof status === 'string') statuses.set(id, FOUR.has(status) ? status : 'UNKNOWN');
  }
  return items.length > 0 && statuses.size === 0 ? undefined : { statuses, present, complete };
}
