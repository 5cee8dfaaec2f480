import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { StoreError } from '../../../monitor/errors.ts';
import type { DatabasePaths } from '../database.ts';
import type { Answer, Asked, Request } from './thread-messages.ts';

/** The thread in which SQLite works, seen from outside. */
export interface StoreThread {
  readonly sqliteVersion: string;
  /** The answer, which the caller knows the type of. @throws {StoreError} */
  ask<Value>(request: Request): Promise<Value>;
  /** Closes the store once all that was asked is done; resolves when the thread has ended. */
  close(): Promise<void>;
}

interface Waiting {
  resolve(value: unknown): void;
  reject(error: StoreError): void;
}

/** Opens the store in a thread of its own. @throws {StoreError} */
export async function startThread(paths: DatabasePaths): Promise<StoreThread> {
  const extension = import.meta.url.slice(import.meta.url.lastIndexOf('.'));
  // No listener for errors: one that is not told as an answer is a bug and ends the process.
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

  function expect<Value>(number: number): Promise<Value> {
    const { promise, resolve, reject } = Promise.withResolvers<Value>();
    waiting.set(number, { resolve, reject });
    return promise;
  }

  function ask<Value>(request: Request): Promise<Value> {
    last += 1;
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- of windows, not of threads
    worker.postMessage({ number: last, request } satisfies Asked);
    return expect(last);
  }

  const sqliteVersion = await expect<string>(0);
  return {
    sqliteVersion,
    ask,
    close: async () => {
      await ask('close');
      await ended;
    },
  };
}
