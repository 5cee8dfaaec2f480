/** Opens the store of the first argument and holds it until it is killed. Prints `open` or the error. */
import { writeSync } from 'node:fs';
import { systemClock } from '../../../../src/app/clock.ts';
import { openStore } from '../../../../src/store/sqlite/sqlite-store.ts';

try {
  await openStore({ path: process.argv[2] ?? '', clock: systemClock, emit: () => {} });
  writeSync(1, 'open\n');
  setInterval(() => {}, 60_000);
} catch (error) {
  writeSync(1, `${String(error)}\n`);
}
