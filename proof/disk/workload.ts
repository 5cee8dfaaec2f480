/**
 * Uses a store while its disk fails, and retries failed calls, as a daemon does: `node workload.ts SOURCES STORE`. Prints a
 * {@link WorkloadReport} at the end.
 */
import { writeSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../src/app/clock.ts';
import { StoreError } from '../../src/monitor/errors.ts';
import type { Store } from '../../src/monitor/ports/store.ts';
import type * as SqliteStore from '../../src/store/sqlite/sqlite-store.ts';
import { listingOf } from '../../test/support/monitor.ts';
import { ROUNDS, statusesIn, type WorkloadReport } from './rounds.ts';
import { detectChanges } from '../../test/support/at-once.ts';

const PATIENCE = 20;
/** Maximum attempts to open. Each has its own thread, for which strace counts anew, so each may fail. */
const OPENINGS = 2;
const [, , source = '', path = ''] = process.argv;
const { openStore } = (await import(
  join(source, 'store/sqlite/sqlite-store.ts')
)) as typeof SqliteStore;

let counted = 0;
const failed: string[] = [];

const open = () =>
  openStore({
    path,
    clock: systemClock,
    emit: ({ type }) => (counted += Number(type === 'store.commit_failed')),
  });
const store = await persistently(open, OPENINGS).catch(() => {
  const report: WorkloadReport = { opened: false, failed, commits: 0, counted };
  writeSync(1, JSON.stringify(report));
  process.exit();
});
const afterOpening = failed.length;
await persistently(() => store.configureProjects(['p'], 1));
for (let round = 0; round < ROUNDS; round += 1) {
  await persistently(() => see(store, round));
  await persistently(() => settleOne(store, round));
}
const commits = failed.length - afterOpening;
await persistently(() => store.prune({ before: 0, firstDay: 0 }));
await store.close();
const report: WorkloadReport = { opened: true, failed, commits, counted };
writeSync(1, JSON.stringify(report));

async function persistently<Result>(
  work: () => Promise<Result>,
  patience = PATIENCE,
): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      // A copy of the sources has a class of its own.
      if (!(error instanceof Error) || error.name !== StoreError.name) throw error;
      failed.push(error.message);
      if (attempt === patience) throw error;
    }
  }
}

async function see(to: Store, at: number): Promise<void> {
  const { version, listings } = await to.loadKnown('p', ['prompt']);
  const known = listings.get('prompt');
  if (known === undefined) throw new Error('not loaded');
  const changes = detectChanges(known, listingOf(statusesIn(at)), { at, missingAfter: 3 });
  const health = await to.loadHealth('p');
  const commit = { project: 'p', at, health, version };
  await to.commitPoll({ ...commit, listings: new Map([['prompt', changes]]) });
}

async function settleOne(of: Store, at: number): Promise<void> {
  const [failure] = await of.pendingFailures({ limitPerProject: 1 });
  if (failure === undefined) return;
  await of.settleFailure(failure, { reason: 'not_found' }, at);
}
