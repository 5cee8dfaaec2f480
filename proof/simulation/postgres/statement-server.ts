import type { StoreReader } from '../../../src/monitor/ports/store.ts';

/** A value that is there at once, or a promise of it. */
export type Awaitable<Value> = Value | Promise<Value>;

/** The server's side: makes one statement after the other. */
export interface StatementServer extends AsyncDisposable {
  /** Makes a statement at this time of the server, whole epoch µs. Takes no virtual time. @throws {DatabaseError} */
  run(text: string, values: readonly unknown[], nowUs: number): Awaitable<readonly unknown[]>;
  projects(): Awaitable<readonly StoredProject[]>;
  openReader(): Promise<StoreReader>;
  /** Returns the function that takes back everything from now on. */
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

/** Goes on with a value at once, if it is there. */
export function next<Value, Result>(
  value: Awaitable<Value>,
  work: (value: Value) => Awaitable<Result>,
): Awaitable<Result> {
  return value instanceof Promise ? value.then(work) : work(value);
}
