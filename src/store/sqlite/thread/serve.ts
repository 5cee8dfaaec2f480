import { parentPort, workerData } from 'node:worker_threads';
import type { DatabasePaths } from '../database.ts';
import { toStoreError } from '../errors.ts';
import type { Answer, NumberedRequest } from './thread-messages.ts';

/** What a thread has opened. */
interface Served<Asked> {
  /** Answers the opening. */
  readonly opened: unknown;
  /** @throws {StoreError} */
  readonly serve: (request: Asked | 'close') => unknown;
}

/**
 * Opens something of the store whose paths are the `workerData` of this thread, and answers requests in their order until one
 * closes it.
 */
export async function serveRequests<Asked>(
  open: (paths: DatabasePaths) => Served<Asked> | Promise<Served<Asked>>,
): Promise<void> {
  const paths: DatabasePaths = workerData;
  const port = parentPort;
  if (port === null) throw new Error('this is a thread of the store, not a program');

  /** @throws the error itself if it is a bug, which ends the process */
  function failureOf(number: number, error: unknown): Answer {
    const { reason, message, cause } = toStoreError(error, paths.file);
    return { number, failure: { reason, message, cause } };
  }

  try {
    const { opened, serve } = await open(paths);
    port.on('message', ({ number, request }: NumberedRequest<Asked | 'close'>) => {
      port.postMessage(answer(number, () => serve(request)));
      if (request === 'close') port.close();
    });
    port.postMessage({ number: 0, value: opened } satisfies Answer);
  } catch (error) {
    port.postMessage(failureOf(0, error));
  }

  function answer(number: number, serve: () => unknown): Answer {
    try {
      return { number, value: serve() };
    } catch (error) {
      return failureOf(number, error);
    }
  }
}
