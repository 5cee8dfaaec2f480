import type { StoreFailureReason } from '../../../monitor/errors.ts';
import type { Reads, Writes } from '../database.ts';
import type { Place } from '../sql/transactions.ts';
import type { Call } from './calls.ts';

/** Work for the thread of the store, done in the order of the requests. */
export type Request =
  | { readonly read: Call<Reads> }
  | { readonly write: readonly Call<Writes>[]; readonly place: Place }
  | 'close';

export interface NumberedRequest {
  /** Counted from 1. */
  readonly number: number;
  readonly request: Request;
}

/** Answer to the request with this number. Number 0 answers the opening, and its value is the version of SQLite. */
export type Answer =
  | { readonly number: number; readonly value: unknown }
  | { readonly number: number; readonly failure: Failure };

/** The fields of a `StoreError`: threads exchange no classes. */
interface Failure {
  readonly reason: StoreFailureReason;
  readonly message: string;
  readonly cause: unknown;
}
