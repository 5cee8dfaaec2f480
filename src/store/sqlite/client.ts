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

/**
 * Answers come in the order of the requests, after that of the opening, before which the thread may tell of an upgrade. A failure
 * has the fields of a `StoreError`.
 */
export type Answer =
  | { readonly upgrade: Upgrade }
  | { readonly value: unknown }
  | {
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
  const waiting: Waiting[] = [];

  worker.on('message', (answer: Answer) => {
    if ('upgrade' in answer) return onUpgrade(answer.upgrade);
    const asked = waiting.shift();
    if ('value' in answer) {
      asked?.resolve(answer.value);
    } else {
      const { reason, message, cause } = answer.failure;
      asked?.reject(new StoreError(reason, message, cause));
    }
  });

  /** The answer is not checked: both sides are this program. */
  function expectAnswer<Value>(): Promise<Value> {
    const { promise, resolve, reject } = Promise.withResolvers<Value>();
    waiting.push({ resolve, reject });
    return promise;
  }

  function ask<Value>(request: Request): Promise<Value> {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- of windows, not of threads
    worker.postMessage(request);
    return expectAnswer();
  }

  const opened = await expectAnswer<OpenedStore>();
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
