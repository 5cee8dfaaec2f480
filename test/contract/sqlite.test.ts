import { join } from 'node:path';
import { systemClock } from '../../src/app/clock.ts';
import { openReader } from '../../src/store/sqlite/sqlite-reader.ts';
import { openStore } from '../../src/store/sqlite/sqlite-store.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { describeStore } from './store-suite.ts';

describeStore('the SQLite', async (emit) => {
  const directory = await temporaryDirectory();
  const path = join(directory.path, 'store.db');
  const open = () => openStore({ path, clock: systemClock, emit });
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
});
