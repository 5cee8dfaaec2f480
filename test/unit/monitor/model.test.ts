import { join } from 'node:path';
import { systemClock } from '../../../src/app/clock.ts';
import { createRecordBudget } from '../../../src/evaluation-api/listing/record-budget.ts';
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { StoreError } from '../../../src/monitor/errors.ts';
import { createPoller } from '../../../src/monitor/poller.ts';
import type { Store } from '../../../src/monitor/ports/store.ts';
import { openStoreInProcess } from '../../support/store-in-process.ts';
import {
  eventLog,
  fakeClock,
  listingOf,
  neverStopping,
  scriptedService,
} from '../../support/monitor.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

/** Status of one id in a listing; `present` is an item without a usable status. */
type Sighting = 'PENDING' | 'RUNNING' | 'COMPLETED' | 'FAILED' | 'PAUSED' | 'present';
type Served = {
  readonly sightings: Readonly<Record<string, Sighting>>;
  readonly complete: boolean;
};

type Step =
  | { readonly step: 'listing'; readonly served: Served }
  | { readonly step: 'not stored'; readonly served: Served }
  | { readonly step: 'repeat' }
  | { readonly step: 'failure' }
  | { readonly step: 'restart' };

const MISSING_AFTER = 2;
const ids = ['a', 'b', 'c', '__proto__'];

const served: fc.Arbitrary<Served> = fc.record({
  sightings: fc
    .array(
      fc.tuple(
        fc.constantFrom(...ids),
        fc.constantFrom<Sighting>('PENDING', 'RUNNING', 'COMPLETED', 'FAILED', 'PAUSED', 'present'),
      ),
      { maxLength: 5 },
    )
    .map((entries) => Object.fromEntries(entries)),
  complete: fc.oneof({ weight: 5, arbitrary: fc.constant(true) }, fc.constant(false)),
});

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ step: fc.constant('listing' as const), served }) },
  { weight: 1, arbitrary: fc.record({ step: fc.constant('not stored' as const), served }) },
  { weight: 3, arbitrary: fc.constant({ step: 'repeat' as const }) },
  { weight: 1, arbitrary: fc.constant({ step: 'failure' as const }) },
  { weight: 1, arbitrary: fc.constant({ step: 'restart' as const }) },
);

/** Applies the rules of docs/specification.md#transitions again, id by id over everything that was served and stored. */
function expected(history: readonly Served[]) {
  const moves: string[] = [];
  const alive = new Map<string, string>();
  let gone = 0;
  for (const id of ids) {
    let status: string | undefined;
    let lacking = 0;
    history.forEach(({ sightings, complete }, index) => {
      const sighting = Object.hasOwn(sightings, id) ? sightings[id] : undefined;
      if (sighting === undefined) {
        if (!complete || status === undefined) return;
        lacking += 1;
        if (lacking === MISSING_AFTER) gone += 1;
        return;
      }
      lacking = 0;
      if (sighting === 'present') return;
      const seen = sighting === 'PAUSED' ? 'UNKNOWN' : sighting;
      if (index > 0 && seen !== status) moves.push(`${index} ${id} ${status ?? 'NEW'}>${seen}`);
      status = seen;
    });
    if (status !== undefined && lacking < MISSING_AFTER) alive.set(id, `${status} ${lacking}`);
  }
  return { moves: moves.toSorted(), alive: Object.fromEntries(alive), gone };
}

function toListing({ sightings, complete }: Served) {
  const entries = Object.entries(sightings);
  return listingOf(Object.fromEntries(entries.filter(([, seen]) => seen !== 'present')), {
    idsWithoutStatus: new Set(entries.filter(([, seen]) => seen === 'present').map(([id]) => id)),
    complete,
  });
}

async function play(steps: readonly Step[]) {
  await using directory = await temporaryDirectory();
  const clock = fakeClock();
  const { emit } = eventLog();
  const service = scriptedService();
  const open = () => openStoreInProcess({ path: join(directory.path, 'store.db'), clock, emit });
  let store = await open();
  let full = false;
  const pollerOf = (opened: Store) =>
    createPoller({
      service,
      clock,
      emit,
      missingAfter: () => MISSING_AFTER,
      maxIntervalMs: () => 60_000,
      holdRecords: createRecordBudget(Infinity, systemClock).holdRecords,
      shutdown: neverStopping(),
      store: {
        loadKnown: (...asked) => opened.loadKnown(...asked),
        commitPoll: (commit) =>
          full ? Promise.reject(new StoreError('full', 'disk full')) : opened.commitPoll(commit),
      },
    });
  let poller = pollerOf(store);
  await store.configureProjects(['p'], clock.now());

  const history: Served[] = [];
  const stamps: number[] = [];
  let repeatable = false;
  for (const current of steps) {
    clock.advance(1000);
    const stored = current.step === 'listing' || (current.step === 'repeat' && repeatable);
    switch (current.step) {
      case 'restart':
        await store.close();
        store = await open();
        poller = pollerOf(store);
        repeatable = false;
        continue;
      case 'repeat':
        if (!repeatable) continue;
        service.repeats();
        break;
      case 'failure':
        service.fails('server_error');
        break;
      case 'listing':
      case 'not stored':
        service.shows(toListing(current.served));
        break;
    }
    full = current.step === 'not stored';
    await poller.poll({ id: 'p', datasets: false }, { dueAt: clock.now(), nextAt: clock.now() });
    if (!stored) continue;
    const last = current.step === 'listing' ? current.served : history.at(-1);
    if (last !== undefined) history.push(last);
    stamps.push(clock.now());
    repeatable = true;
  }

  const transitions = await store.transitions({});
  const snapshot = (await store.snapshot()).projects[0]?.listings.get('prompt');
  const statuses = await store.statuses({});
  const failures = await store.failures({});
  await store.close();
  return { history, stamps, transitions, snapshot, statuses, failures };
}

it(
  'the stored state agrees with a naive model over random listings, failures and restarts',
  { timeout: 300_000 },
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const { history, stamps, transitions, snapshot, statuses, failures } = await play(steps);
        const model = expected(history);

        const moves = transitions.map(
          ({ at, id, from, to }) => `${stamps.indexOf(at)} ${id} ${from}>${to}`,
        );
        expect(moves.toSorted()).toEqual(model.moves);
        expect(
          Object.fromEntries(statuses.map((row) => [row.promptId, `${row.status} ${row.missing}`])),
        ).toEqual(model.alive);
        expect(snapshot?.goneTotal).toBe(model.gone);

        const totals = new Map<string, number>();
        for (const move of model.moves) {
          const pair = move.split(' ').at(-1) ?? '';
          totals.set(pair, (totals.get(pair) ?? 0) + 1);
        }
        expect(
          new Map(snapshot?.transitions.map(([from, to, count]) => [`${from}>${to}`, count])),
        ).toEqual(totals);
        expect(failures).toHaveLength(
          model.moves.filter((move) => move.endsWith('>FAILED')).length,
        );
      }),
      { numRuns: 60 },
    );
  },
);
