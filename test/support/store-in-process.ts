import { openDatabase, type DatabasePaths, type Upgrade } from '../../src/store/sqlite/database.ts';
import { toStoreError } from '../../src/store/sqlite/errors.ts';
import {
  openStore,
  type SqliteStore,
  type StoreOptions,
} from '../../src/store/sqlite/sqlite-store.ts';
import type { StoreThread } from '../../src/store/sqlite/client.ts';

/**
 * Opens a store whose SQLite runs in this thread, for tests of its users: starting a thread costs 75 ms of CPU time. Calls
 * and results are copied, as between threads.
 */
export async function openStoreInProcess(options: StoreOptions): Promise<SqliteStore> {
  return await openStore({ ...options, startThread });
}

async function startThread(
  paths: DatabasePaths,
  onUpgrade: (upgrade: Upgrade) => void,
): Promise<StoreThread> {
  const database = await openDatabase(paths, { onUpgrade });

  function answer<Result>(work: () => unknown): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    // Like a message, the result arrives in a later turn of the event loop.
    setImmediate(() => {
      try {
        resolve(structuredClone(work()) as Result);
      } catch (error) {
        reject(toStoreError(error, paths.file));
      }
    });
    return promise;
  }

  return {
    sqliteVersion: database.sqliteVersion,
    read: (call) => {
      const asked = structuredClone(call);
      return answer(() => database.read(asked));
    },
    write: (calls, place) => {
      const asked = structuredClone(calls);
      return answer(() => database.write(asked, place));
    },
    close: () => answer(() => database.close()),
  };
}
