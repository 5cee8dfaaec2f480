import { causeOf } from '../domain/cause.ts';
import { errorLabel, isErrorId, MAX_ERROR_LABELS } from '../domain/failure.ts';

// What migrations compute of the failures that earlier versions have settled. Each engine reads and writes its tables of that time.

export interface SettledRow {
  readonly settlement_id: number;
  readonly transition_id: number;
  /** The key of its project or listing. */
  readonly key: number;
  readonly settled_at: number;
  readonly error_id: string | null;
  readonly error_msg: string | null;
  readonly reason: string | null;
}

/** Its columns but the key, of a failure `f` and its settlement `s`. */
export const SETTLED_COLUMNS =
  's.settlement_id, f.transition_id, f.settled_at, f.error_id, f.error_msg, f.reason';

function errorInfoOf({ error_id, error_msg, reason }: SettledRow) {
  return reason === null ? { error_id, error_msg } : undefined;
}

/** Returns the id of the cause. */
export function causeIdOf(row: SettledRow): string {
  return causeOf(errorInfoOf(row)).id;
}

interface Total {
  readonly key: number;
  readonly label: string;
  /** The place of an error_id among those of its key, from 1; null for the other labels. */
  readonly place: number | null;
  count: number;
  readonly first_seen_at: number;
  last_seen_at: number;
}

/** Counts failures by error_id, up to the limit for each key. */
export class SettledTotals {
  readonly #keys = new Map<number, Map<string, Total>>();

  get all(): readonly Total[] {
    return this.#keys
      .values()
      .flatMap((totals) => totals.values())
      .toArray();
  }

  add(row: SettledRow): void {
    const { key, settled_at: at } = row;
    const totals = this.#keys.get(key) ?? new Map<string, Total>();
    this.#keys.set(key, totals);
    const own = errorLabel(errorInfoOf(row));
    const ids = totals.keys().filter(isErrorId).toArray().length;
    const label = totals.has(own) || !isErrorId(own) || ids < MAX_ERROR_LABELS ? own : 'other';
    const place = isErrorId(label) ? ids + 1 : null;
    const first = { key, label, place, count: 0, first_seen_at: at, last_seen_at: at };
    const total = totals.get(label) ?? first;
    total.count += 1;
    total.last_seen_at = Math.max(total.last_seen_at, at);
    totals.set(label, total);
  }
}
