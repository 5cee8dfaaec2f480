import type { StoreFailureReason } from '../../../monitor/errors.ts';
import type { Reads, WriteCall } from '../database.ts';
import type { Place } from '../sql/transactions.ts';

/** What the thread of the store does, in the order in which it is asked. */
export type Request =
  | { readonly read: keyof Reads; readonly args: readonly unknown[] }
  | { readonly write: readonly WriteCall[]; readonly place: Place }
  | 'close';

export interface Asked {
  /** Counted from 1. */
  readonly number: number;
  readonly request: Request;
}

/** To the question of this number; number 0 is the opening, and its value the version of SQLite. */
export type Answer =
  | { readonly number: number; readonly value: unknown }
  | { readonly number: number; readonly failure: Failure };

/** A `StoreError` on its way between threads, which no class survives. */
interface Failure {
  readonly reason: StoreFailureReason;
  readonly message: string;
  readonly cause: unknown;
}
