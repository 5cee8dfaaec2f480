import type { StoreReader } from '../../../src/monitor/ports/store.ts';

/** A value, or a promise of it. */
export type Awaitable<Value> = Value | Promise<Value>;

/** A server that executes one statement after the other. */
export interface StatementServer extends AsyncDisposable {
  /** Executes a statement at this time of the server, whole epoch µs. Takes no virtual time. @throws {DatabaseError} */
  run(text: string, values: readonly unknown[], nowUs: number): Awaitable<readonly unknown[]>;
  projects(): Awaitable<readonly StoredProject[]>;
  openReader(): Promise<StoreReader>;
  /** Returns the function that undoes everything from now on. */
  readonly save?: () => () => void;
  /** Returns the worker that has claimed a failure. */
  readonly claimant?: (transitionId: number) => string | null;
}

export interface StoredProject {
  readonly id: string;
  readonly version: number;
  readonly owner: string | null;
  /** Null while it is configured. */
  readonly removed_at: number | null;
}

/** Calls `work` with the value: at once if it is no promise. */
export function next<Value, Result>(
  value: Awaitable<Value>,
  work: (value: Value) => Awaitable<Result>,
): Awaitable<Result> {
  return value instanceof Promise ? value.then(work) : work(value);
}
