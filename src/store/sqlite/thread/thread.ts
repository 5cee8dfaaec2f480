/** The thread in which SQLite works, so that neither a large commit nor a slow disk blocks the event loop. */
import { openDatabase } from '../database.ts';
import { makeCall } from './calls.ts';
import { serveRequests } from './serve.ts';
import type { OpenedStore, Request } from './thread-messages.ts';

await serveRequests<Request>(async (paths) => {
  const database = await openDatabase(paths);
  const { sqliteVersion, news } = database;
  return {
    opened: { sqliteVersion, news } satisfies OpenedStore,
    serve: (request) => {
      if (request === 'close') return database.close();
      if ('write' in request) return database.write(request.write, request.place);
      return makeCall(database.reads, request.read);
    },
  };
});
