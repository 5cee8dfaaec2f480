import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { StoreError } from '../../../monitor/errors.ts';
import type { DatabasePaths, Reads, WriteResult, Writes } from '../database.ts';
import type { Place } from '../sql/transactions.ts';
import type { Call } from './calls.ts';
import type { Answer, NumberedRequest, Request } from './thread-messages.ts';

/** The thread in which SQLite works, seen from outside. */
export interface StoreThread {
  readonly sqliteVersion: string;
  /** @throws {StoreError} */
  read<Asked extends Call<Reads>>(call: Asked): Promise<ReturnType<Reads[Asked['method']]>>;
  /** Makes the calls in a transaction, or in a piece of one. @throws {StoreError} */
  write(calls: readonly Call<Writes>[], place: Place): Promise<readonly WriteResult[]>;
  /** Closes the store after every request before this one; resolves when the thread has ended. */
  close(): Promise<void>;
}

interface Waiting {
  resolve(value: unknown): void;
  reject(error: StoreError): void;
}

/** Opens the store in a new thread. @throws {StoreError} */
export async function startThread(paths: DatabasePaths): Promise<StoreThread> {
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
    const asked = waiting.get(answer.number);
    waiting.delete(answer.number);
    if ('value' in answer) {
      asked?.resolve(answer.value);
    } else {
      const { reason, message, cause } = answer.failure;
      asked?.reject(new StoreError(reason, message, cause));
    }
  });

  function expectAnswer<Value>(number: number): Promise<Value> {
    const { promise, resolve, reject } = Promise.withResolvers<Value>();
    waiting.set(number, { resolve, reject });
    return promise;
  }

  /** Sends a request. The answer of the thread is not checked: both sides are this program. */
  function ask<Value>(request: Request): Promise<Value> {
    last += 1;
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- of windows, not of threads
    worker.postMessage({ number: last, request } satisfies NumberedRequest);
    return expectAnswer(last);
  }

  const sqliteVersion = await expectAnswer<string>(0);
  return {
    sqliteVersion,
    read: (call) => ask({ read: call }),
    write: (calls, place) => ask({ write: calls, place }),
    close: async () => {
      await ask('close');
      await ended;
    },
  };
}
