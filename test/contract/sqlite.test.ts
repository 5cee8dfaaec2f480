import { join } from 'node:path';
import { systemClock } from '../../src/app/clock.ts';
import { openReader } from '../../src/store/sqlite/sqlite-reader.ts';
import { openStore } from '../../src/store/sqlite/sqlite-store.ts';
import { openStoreInProcess } from '../support/store-in-process.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import type { OpenStore } from './store/harness.ts';
import { describeContents, describeTurns } from './store-suite.ts';

/** Opens each store by `openAt`, in a file of its own. */
function storesOf(openAt: typeof openStore): OpenStore {
  return async (emit) => {
    const directory = await temporaryDirectory();
    const path = join(directory.path, 'store.db');
    const open = () => openAt({ path, clock: systemClock, emit });
    let store = await open();
    return {
      store,
      reopen: async () => {
        await store.close();
        store = await open();
        return store;
      },
      openReader: () => openReader({ path }),
      [Symbol.asyncDispose]: async () => {
        await store.close();
        await directory[Symbol.asyncDispose]();
      },
    };
  };
}

// A thread costs more CPU time than a test and does not affect contents.
describeContents('the SQLite', storesOf(openStoreInProcess));
describeTurns('the SQLite', storesOf(openStore));
