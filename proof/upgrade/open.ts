/** Opens a store, which upgrades it, and closes it: `node open.ts SOURCES STORE`. */
import { join } from 'node:path';
import { systemClock } from '../../src/app/clock.ts';
import type * as SqliteStore from '../../src/store/sqlite/sqlite-store.ts';

const [, , source = '', path = ''] = process.argv;
const { openStore } = (await import(
  join(source, 'store/sqlite/sqlite-store.ts')
)) as typeof SqliteStore;
await (await openStore({ path, clock: systemClock, emit: () => {} })).close();
