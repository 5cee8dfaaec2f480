import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { StoreError } from '../../../monitor/errors.ts';
import type { DatabasePaths, Reads, ShownReads, Writes, Written } from '../database.ts';
import type { Place } from '../sql/transactions.ts';
import type { Call } from './calls.ts';
import type {
  Answer,
  NumberedRequest,
  OpenedStore,
  ReadRequest,
  Request,
} from './thread-messages.ts';

/** The thread in which SQLite works, seen from outside. */
export interface StoreThread extends OpenedStore {
  /** @throws {StoreError} */
  read<Asked extends Call<Reads>>(call: Asked): Promise<ReturnType<Reads[Asked['method']]>>;
  /** Makes the calls in a transaction, or in a piece of one. @throws {StoreError} */
  write(calls: readonly Call<Writes>[], place: Place): Promise<Written>;
  /** Closes the store after every request before this one; resolves when the thread has ended. */
  close(): Promise<void>;
}

/** A thread that only reads, seen from outside. */
export interface ReadThread {
  /** @throws {StoreError} */
  read<Asked extends Call<ShownReads>>(
    call: Asked,
  ): Promise<ReturnType<ShownReads[Asked['method']]>>;
  /** Ends the thread after every request before this one; resolves when it has ended. */
  close(): Promise<void>;
}

/** Opens the store in a new thread. @throws {StoreError} */
export async function startThread(paths: DatabasePaths): Promise<StoreThread> {
  const { opened, ask, close } = await start<OpenedStore, Request>('thread', paths);
  return {
    ...opened,
    read: (call) => ask({ read: call }),
    write: (calls, place) => ask({ write: calls, place }),
    close,
  };
}

/** Opens a store that is open once more, in a new thread. @throws {StoreError} */
export async function startReadThread(paths: DatabasePaths): Promise<ReadThread> {
  const { ask, close } = await start<undefined, ReadRequest>('read-thread', paths);
  return { read: (call) => ask({ read: call }), close };
}

interface Waiting {
  resolve(value: unknown): void;
  reject(error: StoreError): void;
}

interface Started<Opened, Asked> {
  readonly opened: Opened;
  /** Sends a request. The answer of the thread is not checked: both sides are this program. */
  readonly ask: <Value>(request: Asked) => Promise<Value>;
  readonly close: () => Promise<void>;
}

/** Starts a thread and waits for what it opens. @throws {StoreError} */
async function start<Opened, Asked>(
  name: 'thread' | 'read-thread',
  paths: DatabasePaths,
): Promise<Started<Opened, Asked>> {
  const extension = import.meta.url.slice(import.meta.url.lastIndexOf('.'));
  // No listener for errors: an error that is not an answer is a bug and ends the process.
  const worker = new Worker(new URL(`${name}${extension}`, import.meta.url), {
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

  function ask<Value>(request: Asked | 'close'): Promise<Value> {
    last += 1;
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- of windows, not of threads
    worker.postMessage({ number: last, request } satisfies NumberedRequest<Asked | 'close'>);
    return expectAnswer(last);
  }

  const opened = await expectAnswer<Opened>(0);
  return {
    opened,
    ask,
    close: async () => {
      await ask('close');
      await ended;
    },
  };
}
