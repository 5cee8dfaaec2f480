/**
 * The thread in which SQLite works, so that neither a large commit nor a slow disk blocks the event loop. Its `workerData`
 * are the paths of the store.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { openDatabase, type DatabasePaths, type OpenDatabase } from '../database.ts';
import { toStoreError } from '../errors.ts';
import { makeCall } from './calls.ts';
import type { Answer, NumberedRequest, Request } from './thread-messages.ts';

const paths: DatabasePaths = workerData;
const port = parentPort;
if (port === null) throw new Error('this is a thread of the store, not a program');

try {
  const database = await openDatabase(paths);
  port.on('message', ({ number, request }: NumberedRequest) => {
    port.postMessage(answer(number, database, request));
    if (request === 'close') port.close();
  });
  port.postMessage({ number: 0, value: database.sqliteVersion } satisfies Answer);
} catch (error) {
  port.postMessage(failureOf(0, error));
}

function answer(number: number, database: OpenDatabase, request: Request): Answer {
  try {
    return { number, value: serve(database, request) };
  } catch (error) {
    return failureOf(number, error);
  }
}

function serve(database: OpenDatabase, request: Request): unknown {
  if (request === 'close') return database.close();
  if ('write' in request) return database.write(request.write, request.place);
  return makeCall(database.reads, request.read);
}

/** @throws the error itself if it is a bug, which ends the process */
function failureOf(number: number, error: unknown): Answer {
  const { reason, message, cause } = toStoreError(error, paths.file);
  return { number, failure: { reason, message, cause } };
}
