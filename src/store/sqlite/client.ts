import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { StoreError, type StoreFailureReason } from '../../monitor/errors.ts';
import type {
  Call,
  DatabasePaths,
  OpenDatabase,
  Reads,
  Upgrade,
  WriteResult,
  Writes,
} from './database.ts';
import type { Place } from './sql/transactions.ts';

/** The thread in which SQLite works, seen from outside. */
export interface StoreThread extends OpenedStore {
  /** @throws {StoreError} */
  read<Asked extends Call<Reads>>(call: Asked): Promise<ReturnType<Reads[Asked['method']]>>;
  /** Makes the calls in a transaction, or in a piece of one. @throws {StoreError} */
  write(calls: readonly Call<Writes>[], place: Place): Promise<readonly WriteResult[]>;
  /** Closes the store after every request before this one; resolves when the thread has ended. */
  close(): Promise<void>;
}

/** What the thread tells when it has opened the store. */
export type OpenedStore = Pick<OpenDatabase, 'sqliteVersion'>;

/** Work for the thread, done in the order of the requests. */
export type Request =
  | { readonly read: Call<Reads> }
  | { readonly write: readonly Call<Writes>[]; readonly place: Place }
  | 'close';

export interface NumberedRequest {
  /** Counted from 1. */
  readonly number: number;
  readonly request: Request;
}

/**
 * Answer to the request with this number; number 0 answers the opening, before which the thread may tell of an upgrade. A failure
 * has the fields of a `StoreError`.
 */
export type Answer =
  | { readonly upgrade: Upgrade }
  | { readonly number: number; readonly value: unknown }
  | {
      readonly number: number;
      readonly failure: {
        readonly reason: StoreFailureReason;
        readonly message: string;
        readonly cause: unknown;
      };
    };

interface Waiting {
  resolve(value: unknown): void;
  reject(error: StoreError): void;
}

/** Opens the store in a new thread. @throws {StoreError} */
export async function startThread(
  paths: DatabasePaths,
  onUpgrade: (upgrade: Upgrade) => void,
): Promise<StoreThread> {
  const extension = import.meta.url.slice(import.meta.url.lastIndexOf('.'));
  // No listener for errors: an error that is not an answer is a bug and ends the process.
  const worker = new Worker(new URL(`thread${extension}`, import.meta.url), {
    name: 'store',
    workerData: paths,
  });
  const ended = once(worker, 'exit');
  const waiting = new Map<number, Waiting>();
  let last = 0;

  worker.on('message', (answer: Answer) => {
    if ('upgrade' in answer) return onUpgrade(answer.upgrade);
    const asked = waiting.get(answer.number);
    waiting.delete(answer.number);
    if ('value' in answer) {
      asked?.resolve(answer.value);
    } else {
      const { reason, message, cause } = answer.failure;
      asked?.reject(new StoreError(reason, message, cause));
    }
  });

  /** The answer is not checked: both sides are this program. */
  function expectAnswer<Value>(number: number): Promise<Value> {
    const { promise, resolve, reject } = Promise.withResolvers<Value>();
    waiting.set(number, { resolve, reject });
    return promise;
  }

  function ask<Value>(request: Request): Promise<Value> {
    last += 1;
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- of windows, not of threads
    worker.postMessage({ number: last, request } satisfies NumberedRequest);
    return expectAnswer(last);
  }

  const opened = await expectAnswer<OpenedStore>(0);
  return {
    ...opened,
    read: (call) => ask({ read: call }),
    write: (calls, place) => ask({ write: calls, place }),
    close: async () => {
      await ask('close');
      await ended;
    },
  };
}
