/** Polls a project over and over, and prints each transition once its commit is acknowledged. */
import { writeSync } from 'node:fs';
import { systemClock } from '../../../../src/app/clock.ts';
import { openStore } from '../../../../src/store/sqlite/sqlite-store.ts';
import { pollItems } from '../../../support/experiments.ts';

const store = await openStore({
  path: process.argv[2] ?? '',
  clock: systemClock,
  emit: () => {},
});
await store.configureProjects(['p'], 1);
for (let round = 0; ; round += 1) {
  const x = round % 2 === 0 ? 'RUNNING' : 'FAILED';
  const committed = await pollItems(store, 'p', { x }, round);
  for (const { transitionId, from, to } of committed?.transitions ?? []) {
    writeSync(1, `${transitionId} ${from} ${to}\n`);
  }
}
