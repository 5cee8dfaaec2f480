/**
 * Uses a store as a daemon does, and tries again what fails: `node workload.ts SOURCES STORE FROM TO` plays these rounds of
 * polls. Prints a line after each call that changed the store, and one at the end if it could open it.
 */
import { writeSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../src/app/clock.ts';
import { countDurations } from '../../src/domain/limits.ts';
import type { Settlement } from '../../src/domain/failure.ts';
import { StoreError } from '../../src/monitor/errors.ts';
import type * as SqliteStore from '../../src/store/sqlite/sqlite-store.ts';
import { compareListing } from '../../src/domain/transition.ts';
import { listingOf } from '../../test/support/monitor.ts';
import { labelOf, type Line } from './judge.ts';
import { withCause } from '../../test/support/failures.ts';

const [, , source = '', path = '', from = '', to = ''] = process.argv;
const { openStore } = (await import(
  join(source, 'store/sqlite/sqlite-store.ts')
)) as typeof SqliteStore;
/** Maximum attempts to open. strace counts the calls of each new thread anew, so each may fail. */
const OPENINGS = 2;
const PATIENCE = 20;
const MINUTE = 60_000;
const STATUSES = ['PENDING', 'RUNNING', 'COMPLETED', 'FAILED'] as const;
/** Statuses of a prompt whose experiment finishes in each third round. */
const ENDING = ['RUNNING', 'COMPLETED', 'COMPLETED'] as const;
const NARROW = 4;
/** Prompts that all move in the same commit, which then spans dozens of pages. */
const WIDE = 200;
const SETTLEMENTS: readonly [Settlement, ...Settlement[]] = [
  { reason: 'not_found' },
  { errorInfo: { error_id: 'TIMEOUT', error_msg: 'took 5 s' }, errorMsgTruncated: false },
  { errorInfo: { error_id: null, error_msg: 'unknown' }, errorMsgTruncated: true },
];

let failed = 0;
let emitted = 0;
const store = await persistently(
  () => openStore({ path, clock: systemClock, emit: ({ type }) => count(type) }),
  OPENINGS,
).catch(() => process.exit());
failed = 0;
if (from === '0') {
  await persistently(() => store.configureProjects(['narrow', 'wide', 'ending'], 0));
  tell({ what: 'configured', rows: [] });
}
for (let round = Number(from); round < Number(to); round += 1) {
  const narrow = (n: number) => [`prompt-${n}`, STATUSES[(round * (n + 1)) % 4] ?? ''] as const;
  const wide = (n: number) =>
    [`prompt-${n}-${'x'.repeat(40)}`, STATUSES[Math.floor(round / 10) % 4] ?? ''] as const;
  await poll(
    'narrow',
    Array.from({ length: NARROW }, (_, n) => narrow(n)),
    round,
  );
  await poll('ending', [['prompt', ENDING[round % 3] ?? '']], round);
  if (round % 10 === 0)
    await poll(
      'wide',
      Array.from({ length: WIDE }, (_, n) => wide(n)),
      round,
    );
  await settleOrPostpone(round);
}
await store.close();
tell({ what: 'ended', failed, emitted });

async function poll(
  project: string,
  statuses: readonly (readonly [id: string, status: string])[],
  round: number,
): Promise<void> {
  const at = round * MINUTE;
  const committed = await persistently(async () => {
    const { token, listings } = await store.loadKnown(project, ['prompt']);
    const known = listings.get('prompt');
    if (known === undefined) throw new Error('not loaded');
    const { records, ...listing } = listingOf(Object.fromEntries(statuses));
    const labelled = Array.from(
      records,
      ([id, record]) => [id, { ...record, experiment: `of ${project}` }] as const,
    );
    const seen = { ...listing, records: new Map(labelled) };
    const { changes } = await compareListing(known, seen, { at, missingAfter: 3 });
    return await store.commitPoll({
      project,
      at,
      health: await store.loadHealth(project),
      token,
      listings: new Map([['prompt', changes]]),
      // Without the stays that began at the first poll: a migration that counts stored transitions cannot know these.
      durations: countDurations(changes.transitions, at, 1),
    });
  });
  if (committed === undefined) throw new Error('not committed');
  const rows = committed.transitions.map((row) =>
    [row.transitionId, project, row.id, row.from, row.to].join(' '),
  );
  const finishes = committed.finishes.map((row) =>
    [row.finishId, row.project, row.experiment].join(' '),
  );
  tell({ what: 'committed', rows, finishes });
}

/** Takes the oldest pending failure, and in turn postpones and settles it. */
async function settleOrPostpone(round: number): Promise<void> {
  const [failure] = await persistently(() => store.pendingFailures({ limitPerProject: 1 }));
  if (failure === undefined) return;
  const at = round * MINUTE;
  if (round % 2 === 0) {
    const settlement = SETTLEMENTS[failure.transitionId % 3] ?? SETTLEMENTS[0];
    await persistently(() => store.settleFailure(failure, withCause(settlement), at));
    tell({ what: 'settled', rows: [`${failure.transitionId} ${labelOf(settlement)}`] });
  } else {
    const tries = { count: 1, useless: 1, firstAt: at, lastAt: at, nextAt: at + MINUTE };
    await persistently(() => store.postponeFailure(failure, tries));
  }
}

function count(event: string): void {
  if (event === 'store.commit_failed') emitted += 1;
}

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
      failed += 1;
      if (attempt === patience) throw error;
    }
  }
}

function tell(line: Line): void {
  writeSync(1, `${JSON.stringify(line)}\n`);
}
