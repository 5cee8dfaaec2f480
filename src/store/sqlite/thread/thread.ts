/**
 * Where SQLite works: a thread of its own, so that neither a large commit nor a slow disk holds up the event loop. Its
 * data is where the store is.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { openDatabase, type DatabasePaths, type OpenDatabase } from '../database.ts';
import { toStoreError } from '../errors.ts';
import type { Answer, Asked, Request } from './thread-messages.ts';

const paths: DatabasePaths = workerData;
const port = parentPort;
if (port === null) throw new Error('this is a thread of the store, not a program');

try {
  const database = await openDatabase(paths);
  port.on('message', ({ number, request }: Asked) => {
    port.postMessage(answer(number, database, request));
    if (request === 'close') port.close();
  });
  port.postMessage({ number: 0, value: database.sqliteVersion } satisfies Answer);
} catch (error) {
  port.postMessage(failed(0, error));
}

function answer(number: number, database: OpenDatabase, request: Request): Answer {
  try {
    return { number, value: serve(database, request) };
  } catch (error) {
    return failed(number, error);
  }
}

function serve(database: OpenDatabase, request: Request): unknown {
  if (request === 'close') return database.close();
  if ('write' in request) return database.write(request.write, request.place);
  return Reflect.apply(database.reads[request.read], undefined, request.args);
}

function failed(number: number, error: unknown): Answer {
  const { reason, message, cause } = toStoreError(error, paths.file);
  return { number, failure: { reason, message, cause } };
}
