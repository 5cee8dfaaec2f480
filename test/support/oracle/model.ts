import type { JournalEntry } from './observation.ts';

// A second implementation of docs/specification.md#transitions, written from that page and not from the daemon's code.

/** State of one kind of record of one project after some listings. */
export interface State {
  readonly baselined: boolean;
  /** The last usable listing, which a 304 repeats. */
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

export interface Rules {
  readonly key: string;
  readonly missingAfter: number;
}

export const UNKNOWING: State = { baselined: false, last: undefined, records: new Map(), gone: 0 };

const FOUR = new Set(['PENDING', 'RUNNING', 'COMPLETED', 'FAILED']);

/** Returns the moves that a daemon records for this listing, and its state from then on. */
export function takeNote(
  state: State,
  entry: JournalEntry,
  { key, missingAfter }: Rules,
): { readonly state: State; readonly moves: readonly Move[] } {
  const reading = entry.unchanged ? state.last : read(entry, key);
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

function read({ kind, items }: JournalEntry, key: string): Reading | undefined {
  const statuses = new Map<string, string>();
  const present = new Set<string>();
  let complete = true;
  for (const [id, raw] of items) {
    if (!isUsable(id, key)) {
      complete = false;
      continue;
    }
    present.add(id);
    const status = statusOf(raw, kind);
    if (status !== undefined) statuses.set(id, status);
  }
  return items.length > 0 && statuses.size === 0 ? undefined : { statuses, present, complete };
}

function isUsable(id: unknown, key: string): id is string {
  return (
    typeof id === 'string' &&
    id !== '' &&
    Array.from(id).length <= 512 &&
    id.isWellFormed() &&
    !id.includes('\0') &&
    !id.includes(key)
  );
}

function statusOf(raw: unknown, kind: JournalEntry['kind']): string | undefined {
  if (typeof raw === 'string') return FOUR.has(raw) ? raw : 'UNKNOWN';
  return raw === null && kind === 'dataset' ? 'NONE' : undefined;
}
