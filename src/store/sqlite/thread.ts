/** The thread in which SQLite works, so that neither a large commit nor a slow disk blocks the event loop. */
import { parentPort, workerData } from 'node:worker_threads';
import type { Answer, OpenedStore, Request } from './client.ts';
import { type DatabasePaths, type OpenDatabase, openDatabase, type Upgrade } from './database.ts';
import { toStoreError } from './errors.ts';

const paths: DatabasePaths = workerData;
const port = parentPort;
if (port === null) throw new Error('this is the thread of the store, not a program');

try {
  const onUpgrade = (upgrade: Upgrade) => port.postMessage({ upgrade } satisfies Answer);
  const database = await openDatabase(paths, { onUpgrade });
  port.on('message', (request: Request) => {
    try {
      port.postMessage({ value: serve(database, request) } satisfies Answer);
    } catch (error) {
      port.postMessage(failureOf(error));
    }
    if (request === 'close') port.close();
  });
  const { sqliteVersion } = database;
  port.postMessage({ value: { sqliteVersion } satisfies OpenedStore });
} catch (error) {
  port.postMessage(failureOf(error));
}

function serve(database: OpenDatabase, request: Request): unknown {
  if (request === 'close') return database.close();
  if ('write' in request) return database.write(request.write, request.place);
  return database.read(request.read);
}

/** @throws the error itself if it is a bug, which ends the process */
function failureOf(error: unknown): Answer {
  const { reason, message, cause } = toStoreError(error, paths.file);
  return { failure: { reason, message, cause } };
}
