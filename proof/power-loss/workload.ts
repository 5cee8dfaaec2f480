/**
 * Uses a store as a daemon does, reopens it halfway, and prints an acknowledgement after each call that changes it:
 * `node workload.ts SOURCES STORE ROUNDS`.
 */
import { writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Store } from '../../src/monitor/ports/store.ts';
import type * as SqliteStore from '../../src/store/sqlite/sqlite-store.ts';
import { systemClock } from '../../src/app/clock.ts';
import { listingOf } from '../../test/support/monitor.ts';
import { WIDE, wideId } from './promises.ts';
import { detectChanges } from '../../test/support/at-once.ts';

const [, , source = '', path = '', rounds = ''] = process.argv;
const { openStore } = (await import(
  join(source, 'store/sqlite/sqlite-store.ts')
)) as typeof SqliteStore;
const STATUSES = ['PENDING', 'RUNNING', 'COMPLETED', 'FAILED'] as const;

const open = () => openStore({ path, clock: systemClock, emit: () => {} });
let store = await open();
await store.configureProjects(['narrow', 'wide'], 1);
acknowledge('configured');
for (let round = 0; round < Number(rounds); round += 1) {
  if (round === Math.floor(Number(rounds) / 2)) {
    await store.close();
    store = await open();
  }
  await see(store, 'narrow', narrow(round), round);
  if (round % 20 === 0) await see(store, 'wide', wide(round / 20), round);
  if (round % 3 === 0) await settleOne(store, round);
}
await store.close();

function narrow(round: number): Readonly<Record<string, string>> {
  return Object.fromEntries(
    ['a', 'b', 'c', 'd'].map((id, n) => [id, STATUSES[(round * (n + 1)) % 4] ?? 'PENDING']),
  );
}

function wide(round: number): Readonly<Record<string, string>> {
  const status = STATUSES[round % 4] ?? 'PENDING';
  return Object.fromEntries(Array.from({ length: WIDE }, (_, n) => [wideId(n), status]));
}

async function see(
  to: Store,
  project: string,
  statuses: Readonly<Record<string, string>>,
  at: number,
): Promise<void> {
  const { version, listings } = await to.loadKnown(project, ['prompt']);
  const known = listings.get('prompt');
  if (known === undefined) throw new Error('not loaded');
  const changes = detectChanges(known, listingOf(statuses), { at, missingAfter: 3 });
  const health = await to.loadHealth(project);
  const commit = {
    project,
    at,
    health,
    version,
    listings: new Map([['prompt', changes] as const]),
  };
  const committed = await to.commitPoll(commit);
  if (committed === undefined) throw new Error('not committed');
  acknowledge(
    'committed',
    ...committed.map(({ transitionId, id, from, to: status }) =>
      [transitionId, id, from, status].join(' '),
    ),
  );
}

async function settleOne(of: Store, at: number): Promise<void> {
  const [failure] = await of.pendingFailures({ limitPerProject: 1 });
  if (failure === undefined) return;
  await of.settleFailure(failure, { reason: 'not_found' }, at);
  acknowledge('settled', String(failure.transitionId));
}

function acknowledge(...words: readonly string[]): void {
  writeSync(1, `${JSON.stringify(words)}\n`);
}
