/** Opens the store of the first argument as a daemon does, and closes it. Says when it upgrades it, and when it has opened it. */
import { writeSync } from 'node:fs';
import { systemClock } from '../../../../src/app/clock.ts';
import { openStore } from '../../../../src/store/sqlite/sqlite-store.ts';

const store = await openStore({
  path: process.argv[2] ?? '',
  clock: systemClock,
  emit: () => {},
  onUpgrade: ({ from }) => writeSync(1, `upgrading ${from}\n`),
});
writeSync(1, 'opened\n');
await store.close();
