import type { StoreFailureReason } from '../../../monitor/errors.ts';
import type { OpenDatabase, Reads, ShownReads, Writes } from '../database.ts';
import type { Place } from '../sql/transactions.ts';
import type { Call } from './calls.ts';

/** Work for the thread of the store, done in the order of the requests. */
export type Request =
  | { readonly read: Call<Reads> }
  | { readonly write: readonly Call<Writes>[]; readonly place: Place }
  | 'close';

/** Answer to the opening of the store. */
export type OpenedStore = Pick<OpenDatabase, 'sqliteVersion' | 'news'>;

/** Work for the thread that only reads. */
export type ReadRequest = { readonly read: Call<ShownReads> } | 'close';

export interface NumberedRequest<Asked = Request> {
  /** Counted from 1. */
  readonly number: number;
  readonly request: Asked;
}

/** Answer to the request with this number. Number 0 answers the opening. */
export type Answer =
  | { readonly number: number; readonly value: unknown }
  | { readonly number: number; readonly failure: Failure };

/** The fields of a `StoreError`: threads exchange no classes. */
interface Failure {
  readonly reason: StoreFailureReason;
  readonly message: string;
  readonly cause: unknown;
}
