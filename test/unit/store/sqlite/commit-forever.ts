/** Polls a project over and over, and prints each transition once its commit is acknowledged. */
import { writeSync } from 'node:fs';
import { systemClock } from '../../../../src/app/clock.ts';
import { openStore } from '../../../../src/store/sqlite/sqlite-store.ts';
import { listingOf } from '../../../support/monitor.ts';
import { compareListing } from '../../../../src/domain/transition.ts';

const store = await openStore({
  path: process.argv[2] ?? '',
  clock: systemClock,
  emit: () => {},
});
await store.configureProjects(['p'], 1);
const health = await store.loadHealth('p');
for (let round = 0; ; round += 1) {
  const { token, listings } = await store.loadKnown('p', ['prompt']);
  const known = listings.get('prompt');
  if (known === undefined) throw new Error('not loaded');
  const listing = listingOf({
    x: known.records.get('x')?.status === 'FAILED' ? 'RUNNING' : 'FAILED',
  });
  const { changes } = await compareListing(known, listing, { at: round, missingAfter: 3 });
  const committed = await store.commitPoll({
    project: 'p',
    at: round,
    health,
    token,
    listings: new Map([['prompt', changes]]),
  });
  for (const { transitionId, from, to } of committed?.transitions ?? []) {
    writeSync(1, `${transitionId} ${from} ${to}\n`);
  }
}
