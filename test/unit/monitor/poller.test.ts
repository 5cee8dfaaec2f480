import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { bucketOf, dayOf } from '../../../src/domain/limits.ts';
import { UNFINISHED_STATUSES } from '../../../src/domain/status.ts';
import { StoreError } from '../../../src/monitor/errors.ts';
import { Poller, type PolledProject } from '../../../src/monitor/poller.ts';
import type { Store } from '../../../src/monitor/ports/store.ts';
import { changesOf } from '../../contract/store/harness.ts';
import { PATIENCE } from '../../support/evalwatch.ts';
import { listingOfItems } from '../../support/experiments.ts';
import { openStoreInProcess } from '../../support/store-in-process.ts';
import { eventLog, fakeClock, listingOf, scriptedService } from '../../support/monitor.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const MINUTE = 60_000;

async function setUp() {
  const directory = await temporaryDirectory();
  const clock = fakeClock();
  const log = eventLog();
  const service = scriptedService();
  const store = await openStoreInProcess({
    path: join(directory.path, 'store.db'),
    clock,
    emit: () => {},
  });
  await store.configureProjects(['p'], clock.now());
  const broken = new Set<keyof Store>();
  /** Actions that run once between the load and the commit of a poll. */
  const elsewhere = new Set<() => Promise<void>>();
  /** Ids of prompts that each load asks for, undefined for all. */
  const loaded: (readonly string[] | undefined)[] = [];
  const shutdown = { waits: new AbortController(), requests: new AbortController() };
  const unlessBroken = <Result>(method: keyof Store, call: () => Promise<Result>) =>
    broken.has(method) ? Promise.reject(new StoreError('full', 'the disk is full')) : call();
  const poller = new Poller({
    service,
    clock,
    emit: log.emit,
    missingAfter: () => 3,
    maxIntervalMs: () => 60_000,
    shutdown: { waits: shutdown.waits.signal, requests: shutdown.requests.signal },
    store: {
      loadKnown: (...asked) => {
        loaded.push(asked[2]?.get('prompt'));
        return unlessBroken('loadKnown', () => store.loadKnown(...asked));
      },
      commitPoll: async (commit) => {
        for (const act of elsewhere) {
          elsewhere.delete(act);
          await act();
        }
        return await unlessBroken('commitPoll', () => store.commitPoll(commit));
      },
      keepHealth: (...kept) => store.keepHealth(...kept),
      isFinishing: (id) => store.isFinishing(id),
    },
  });
  const poll = (project: PolledProject = { id: 'p', datasets: false }, endsPause = false) => {
    clock.advance(1000);
    const now = clock.now();
    return poller.poll(project, { dueAt: now - 50, endsPause });
  };
  return {
    clock,
    log,
    service,
    store,
    broken,
    elsewhere,
    loaded,
    shutdown,
    poller,
    poll,
    [Symbol.asyncDispose]: async () => {
      await store.close();
      await directory[Symbol.asyncDispose]();
    },
  };
}

let given: Awaited<ReturnType<typeof setUp>>;
beforeEach(async () => {
  given = await setUp();
});
afterEach(() => given[Symbol.asyncDispose]());

describe('a successful poll', () => {
  it('emits the committed transitions, and poll.finished last', async () => {
    const { service, poll, log, store } = given;
    service.shows(listingOf({ a: 'RUNNING' }));
    await poll();
    log.clear();
    service.shows(listingOf({ a: 'FAILED', b: 'FAILED' }));

    const finished = await poll();

    expect(log.events.map((event) => event.type)).toEqual([
      'scheduler.started_poll',
      'record.transition',
      'record.transition',
      'poll.finished',
    ]);
    expect(finished).toMatchObject({ transitions: 2, prompts: 2, changed: true, unchanged: false });
    const rows = await store.transitions({});
    expect(rows.map((row) => row.transitionId)).toEqual(
      log
        .of('record.transition')
        .map((event) => event.transition.transitionId)
        .toReversed(),
    );
  });

  it('that ends a pause says so before what moved, and one that fails does not', async () => {
    const { service, poll, log, clock, store } = given;
    service.shows(listingOf({ a: 'RUNNING' }));
    await poll();
    const since = clock.now();
    service.fails('timeout');
    await poll(undefined, true);
    expect(log.of('project.resumed')).toEqual([]);
    log.clear();
    service.shows(listingOf({ a: 'FAILED' }));

    await poll(undefined, true);

    const [resumed, moved] = log.events.slice(1);
    const at = clock.now();
    expect(resumed).toEqual({
      type: 'project.resumed',
      project: 'p',
      since: since + 1000,
      at,
      transitions: 1,
    });
    expect(moved).toMatchObject({ type: 'record.transition' });
    expect(await store.transitions({})).toMatchObject([{ at }]);
  });

  it('emits the baseline with a count of each status and no transitions', async () => {
    const { service, poll, log } = given;
    service.shows(listingOf({ a: 'FAILED', b: 'FAILED', c: 'RUNNING' }));

    await poll();

    expect(log.of('listing.baseline')).toMatchObject([{ counts: { FAILED: 2, RUNNING: 1 } }]);
    expect(log.of('record.transition')).toEqual([]);
  });

  it('lets other work run while it emits many events', async () => {
    const { service, poll, log } = given;
    const all = (status: string) =>
      Object.fromEntries(Array.from({ length: 1000 }, (_, id) => [`p${id}`, status]));
    service.shows(listingOf(all('RUNNING')));
    await poll();
    service.shows(listingOf(all('FAILED')));
    let [emitted, most] = [0, 0];
    const count = () => {
      const { length } = log.of('record.transition');
      most = Math.max(most, length - emitted);
      emitted = length;
      next = globalThis.setImmediate(count);
    };
    let next = globalThis.setImmediate(count);
    await poll();
    clearImmediate(next);

    const total = log.of('record.transition').length;
    expect(total).toBe(1000);
    expect(Math.max(most, total - emitted)).toBeLessThan(100);
  });

  it('measures the lag from the due time to the first request', async () => {
    given.service.shows(listingOf({}));

    await given.poll();

    expect(given.log.of('scheduler.started_poll')).toMatchObject([{ lagMs: 50 }]);
  });

  it('finishes experiments by an unchanged listing, and reads no prompt for it', async () => {
    const { service, poll, log, loaded, store } = given;
    service.shows(listingOfItems({ a: ['RUNNING', 'e'], b: ['RUNNING', 'f'] }));
    await poll();
    service.shows(listingOfItems({ a: ['COMPLETED', 'e'], b: ['RUNNING', 'f'] }));
    await poll();
    service.repeats();
    expect(await poll()).toMatchObject({ unchanged: true, changed: true, transitions: 0 });
    expect(await poll()).toMatchObject({ unchanged: true, changed: false });
    expect(loaded).toEqual([undefined, undefined, []]);
    const { finishes } = await store.events({ transition: 0, settlement: 0, finish: 0 }, 10);
    expect(finishes).toMatchObject([{ experiment: 'e', at: given.clock.now() - 1000 }]);
    expect(log.of('experiment.finished')).toEqual([
      { type: 'experiment.finished', finish: finishes[0] },
    ]);
  });

  it('finishes experiments by a listing that was read whole, after its transitions', async () => {
    const { service, poll, log } = given;
    service.shows(listingOfItems({ a: ['RUNNING', 'e'], b: ['RUNNING', 'f'] }));
    await poll();
    service.shows(listingOfItems({ a: ['COMPLETED', 'e'], b: ['RUNNING', 'f'] }));
    await poll();
    log.clear();
    service.shows(listingOfItems({ a: ['COMPLETED', 'e'], b: ['FAILED', 'f'] }));
    await poll();
    service.shows(listingOfItems({ a: ['COMPLETED', 'e'], b: ['FAILED', 'f'] }));
    await poll();
    expect(
      log.events.map(({ type }) => type).filter((type) => type !== 'scheduler.started_poll'),
    ).toEqual([
      'record.transition',
      'experiment.finished',
      'poll.finished',
      'experiment.finished',
      'poll.finished',
    ]);
  });

  it('finishes nothing while the unchanged listing is incomplete', async () => {
    const { service, poll, log } = given;
    service.shows(listingOfItems({ a: ['RUNNING', 'e'] }));
    await poll();
    service.shows(listingOfItems({ a: ['COMPLETED', 'e'] }, false));
    await poll();
    service.repeats();
    expect(await poll()).toMatchObject({ changed: false });
    service.shows(listingOfItems({ a: ['COMPLETED', 'e'] }));
    expect(log.of('experiment.finished')).toEqual([]);
    await poll();
    expect(log.of('experiment.finished')).toHaveLength(1);
  });

  it('is reported as unchanged if the listing is the same as before', async () => {
    const { service, poll } = given;
    service.shows(listingOf({ a: 'RUNNING' }));
    await poll();
    service.repeats();

    expect(await poll()).toMatchObject({ unchanged: true, changed: false, prompts: 1 });
  });
});

describe('failed polls', () => {
  it('change no status and increment the failure count', async () => {
    const { service, poll, store } = given;
    service.shows(listingOf({ a: 'RUNNING' }));
    await poll();
    service.fails('server_error', { statusCode: 500 });

    await poll();
    const second = await poll();

    expect(second).toMatchObject({
      failure: { reason: 'server_error', details: { statusCode: 500 } },
      health: { up: false, consecutiveFailures: 2, reason: 'server_error' },
      prompts: undefined,
    });
    expect(await store.loadHealth('p')).toMatchObject({ up: false, consecutiveFailures: 2 });
    expect(await store.statuses({})).toMatchObject([{ promptId: 'a', status: 'RUNNING' }]);
  });

  it('mark the next request as that of a failing project', async () => {
    const { service, poll } = given;
    service.fails('timeout');

    await poll();
    await poll();

    expect(service.asked.map(({ options }) => options.isFailing)).toEqual([false, true]);
  });

  it('end with the first success, which resets the failure count', async () => {
    const { service, poll } = given;
    service.fails('timeout');
    await poll();
    service.shows(listingOf({}));

    expect(await poll()).toMatchObject({
      failuresBefore: 1,
      health: { up: true, consecutiveFailures: 0, reason: undefined },
    });
  });
});

describe('a project with datasets', () => {
  const project = { id: 'p', datasets: true };

  it('stores the prompts and fails the poll if the dataset listing fails', async () => {
    const { service, poll, store } = given;
    service.shows(listingOf({ a: 'RUNNING' }));
    service.failsDatasets('auth');

    const finished = await poll(project);

    expect(finished).toMatchObject({ failure: { reason: 'auth' }, changed: true });
    expect(await store.statuses({})).toMatchObject([{ promptId: 'a', status: 'RUNNING' }]);
  });

  it('has separate baselines for prompts and datasets', async () => {
    const { service, poll, log } = given;
    service.shows(listingOf({ a: 'RUNNING' }));
    service.failsDatasets('auth');
    await poll(project);
    service.shows(listingOf({ a: 'FAILED' }));
    service.showsDatasets(listingOf({ d: 'FAILED' }));

    await poll(project);

    expect(log.of('listing.baseline').map((event) => event.kind)).toEqual(['prompt', 'dataset']);
    expect(log.of('record.transition')).toMatchObject([
      { transition: { kind: 'prompt', from: 'RUNNING', to: 'FAILED' } },
    ]);
  });
});

it('a poll during which the clock is set back has no negative duration', async () => {
  await using world = await setUp();
  world.service.shows(listingOf({ x: 'PENDING' }));
  world.elsewhere.add(async () => world.clock.set(world.clock.now() - 60 * MINUTE));
  expect(await world.poll()).toMatchObject({ durationMs: 0 });
});

describe('a failing store', () => {
  it('fails the poll, and the next stored poll emits the transition', async () => {
    const { service, store, poll, broken, log, poller } = given;
    service.shows(listingOf({ a: 'RUNNING' }));
    await poll();
    service.shows(listingOf({ a: 'FAILED' }));
    broken.add('commitPoll');

    const failed = await poll();
    const known = service.asked.at(-1)?.options.previous;
    expect(await store.loadHealth('p')).toMatchObject({ up: false, reason: 'store' });
    broken.clear();
    const recovered = await poll();

    expect(failed).toMatchObject({ failure: { reason: 'store' }, transitions: 0, changed: false });
    expect([failed?.isStored, recovered?.isStored]).toEqual([false, true]);
    expect(service.asked.at(-1)?.options.previous).toEqual(known);
    expect(recovered).toMatchObject({ transitions: 1, failuresBefore: 1 });
    expect(log.of('record.transition')).toHaveLength(1);
    expect(poller.health('p')).toMatchObject({ up: true });
  });

  it('does not hide the failure reason of the service', async () => {
    given.service.fails('network');
    given.broken.add('commitPoll');

    expect(await given.poll()).toMatchObject({ failure: { reason: 'network' }, isStored: false });
    given.broken.clear();
    expect(await given.poll()).toMatchObject({ failure: { reason: 'network' }, isStored: true });
  });

  it('fails the poll if the stored records cannot be loaded', async () => {
    given.service.shows(listingOf({}));
    given.broken.add('loadKnown');

    expect(await given.poll()).toMatchObject({ failure: { reason: 'store' } });
  });
});

describe('the ETag of the last listing', () => {
  it.each([
    ['an hour has passed since the last full answer', 25, ['etag', 'etag', undefined, 'etag']],
    [
      'one 304, if polls are further apart than an hour',
      120,
      ['etag', undefined, 'etag', undefined],
    ],
  ])('is used until %s', async (_, minutes, expected) => {
    const { service, poll, clock } = given;
    service.shows(listingOf({}));
    await poll();
    for (const etag of expected) {
      clock.advance(minutes * MINUTE);
      if (etag !== undefined) service.repeats();
      else service.shows(listingOf({}));
      await poll();
    }
    expect(service.asked.map(({ options }) => options.etag)).toEqual([undefined, ...expected]);
    expect(service.asked[1]?.options.previous).toMatchObject({ digest: '1' });
  });

  it('is not used after an invalid response until a full listing arrives', async () => {
    const { service, poll } = given;
    service.shows(listingOf({}));
    await poll();
    service.fails('invalid_response');
    await poll();
    await poll();
    service.shows(listingOf({}));
    await poll();
    await poll();

    const asked = service.asked.map(({ options: { previous, etag } }) => [previous?.digest, etag]);
    expect(asked).toEqual([
      [undefined, undefined],
      ['1', 'etag'],
      ['1', undefined],
      ['1', undefined],
      ['2', 'etag'],
    ]);
  });
});

describe('anomalies', () => {
  const anomalies = [
    { reason: 'invalid', count: 2, indexes: [3, 1] },
    { reason: 'unknown_status', count: 1, indexes: [2] },
  ] as const;

  it('are emitted with each listing, even an unchanged one, and marked as changed when their number is', async () => {
    const { service, poll, log } = given;
    service.shows(listingOf({}, { anomalies }));
    await poll();
    service.repeats();
    await poll();
    const [invalid, unknown] = anomalies;
    service.shows(listingOf({}, { anomalies: [{ ...invalid, count: 3 }, unknown] }));
    await poll();

    const told = log.of('items.anomalous');
    expect(told.map(({ reason, count, changed }) => [reason, count, changed])).toEqual([
      ['invalid', 2, true],
      ['unknown_status', 1, true],
      ['invalid', 2, false],
      ['unknown_status', 1, false],
      ['invalid', 3, true],
      ['unknown_status', 1, false],
    ]);
    expect(told[0]?.indexes).toEqual([3, 1]);
  });

  it('are emitted once, after the commit, if a refused commit is repeated', async () => {
    const { service, poller, clock, store, log, elsewhere } = given;
    const run = { dueAt: clock.now() - 50 };
    const poll = () => poller.poll({ id: 'p', datasets: false }, run);
    service.shows(listingOf({ a: 'RUNNING' }, { anomalies }));
    elsewhere.add(() => commitElsewhere(store));
    const before: string[] = [];
    elsewhere.add(async () => void before.push(...log.events.map(({ type }) => type)));

    expect(await poll()).toBeUndefined();
    expect(before).toEqual(['scheduler.started_poll']);
    expect(await poll()).toBeDefined();

    expect(log.events.map(({ type }) => type)).toEqual([
      'scheduler.started_poll',
      'items.anomalous',
      'items.anomalous',
      'record.transition',
      'poll.finished',
    ]);
    expect(log.of('items.anomalous').map(({ changed }) => changed)).toEqual([true, true]);
  });

  it('are emitted for a poll that could not be stored', async () => {
    const { service, poll, log, broken } = given;
    service.shows(listingOf({ a: 'RUNNING' }, { anomalies }));
    broken.add('commitPoll');
    await poll();
    expect(log.events.map(({ type }) => type)).toEqual([
      'scheduler.started_poll',
      'items.anomalous',
      'items.anomalous',
      'poll.finished',
    ]);
  });

  it('are emitted for a listing without usable items', async () => {
    const { service, poll, log } = given;
    service.fails('invalid_response', { anomalies });

    await poll();

    expect(log.of('items.anomalous')).toHaveLength(2);
    expect(log.of('poll.finished')).toMatchObject([{ failure: { reason: 'invalid_response' } }]);
  });
});

it('a missing prompt is marked as gone even if the listing stays the same', async () => {
  const { service, poll, log } = given;
  service.shows(listingOf({ a: 'RUNNING', b: 'RUNNING' }));
  await poll();
  service.shows(listingOf({ b: 'RUNNING' }));
  await poll();
  service.repeats();
  await poll();
  await poll();
  await poll();

  expect(log.of('record.gone')).toMatchObject([{ kind: 'prompt', record: { id: 'a' } }]);
});

it('a missing prompt is not counted again while an incomplete listing stays the same', async () => {
  const { service, poll, store } = given;
  service.shows(listingOf({ a: 'RUNNING', b: 'RUNNING' }));
  await poll();
  service.shows(listingOf({ b: 'RUNNING' }));
  await poll();
  service.shows(listingOf({ b: 'FAILED' }, { complete: false }));
  await poll();
  service.repeats();
  for (let polls = 0; polls < 3; polls += 1) await poll();

  const statuses = await store.statuses({});
  expect(new Map(statuses.map(({ promptId, missing }) => [promptId, missing]))).toEqual(
    new Map([
      ['a', 1],
      ['b', 0],
    ]),
  );
});

describe('a listing read as a difference', () => {
  it('loads only the records that changed, vanished or were already missing', async () => {
    const { service, poll, log, loaded } = given;
    service.shows(listingOf({ a: 'RUNNING', b: 'RUNNING', c: 'RUNNING', d: 'RUNNING' }));
    await poll();
    service.differs(listingOf({ a: 'FAILED', e: 'PENDING' }), ['b'], 4);
    expect(await poll()).toMatchObject({ transitions: 2, prompts: 4 });
    service.differs(listingOf({ c: 'COMPLETED' }), [], 4);
    await poll();
    service.repeats();
    await poll();

    expect(loaded).toEqual([undefined, ['a', 'e', 'b'], ['c', 'b'], ['b']]);
    expect(log.of('record.gone')).toMatchObject([{ record: { id: 'b', status: 'RUNNING' } }]);
  });

  it('is not allowed after a failed commit', async () => {
    const { service, poll, broken } = given;
    const allowed = () => service.asked.at(-1)?.options.allowDifference;
    service.shows(listingOf({ a: 'RUNNING' }));
    await poll();
    service.differs(listingOf({ a: 'FAILED' }), [], 1);
    await poll();
    broken.add('commitPoll');
    await poll();
    expect(allowed()).toBe(true);
    broken.clear();
    await poll();
    expect(allowed()).toBe(false);
  });
});

describe('the records of a poll', () => {
  it('count as waiting for the store until they are stored or the poll fails', async () => {
    const { service, poll, broken, elsewhere } = given;
    const { waitingForStore } = service;
    service.shows(listingOf({ a: 'RUNNING' }), 500);
    service.showsDatasets(listingOf({ d: 'RUNNING' }), 70);
    const seen: unknown[] = [];
    // oxlint-disable-next-line require-await -- an action returns a promise
    elsewhere.add(async () => void seen.push(...waitingForStore));
    await poll({ id: 'p', datasets: true });
    expect(seen).toEqual([570]);
    expect(waitingForStore).toEqual([]);

    service.shows(listingOf({ a: 'FAILED' }), 700);
    broken.add('commitPoll');
    await poll();
    broken.add('loadKnown');
    await poll();
    service.fails('network');
    await poll();
    expect(waitingForStore).toEqual([]);
  });

  it('do not count while another listing of the project is being read', async () => {
    const { service, poller, poll } = given;
    const datasets = Promise.withResolvers<void>();
    service.showsDatasets(listingOf({ d: 'RUNNING' }), 70, datasets.promise);
    service.shows(listingOf({ a: 'RUNNING' }), 500);
    const polling = poll({ id: 'p', datasets: true });
    await vi.waitFor(() => expect(service.asked).toHaveLength(2), PATIENCE);
    await setImmediate();
    expect(service.waitingForStore).toEqual([]);
    datasets.resolve();
    await polling;
    expect(poller.health('p').up).toBe(true);
  });

  it('are none if the listing is unchanged', async () => {
    const { service, poll, elsewhere } = given;
    service.shows(listingOf({ a: 'RUNNING' }), 500);
    await poll();
    service.repeats();
    const seen: unknown[] = [];
    // oxlint-disable-next-line require-await -- an action returns a promise
    elsewhere.add(async () => void seen.push(...service.waitingForStore));
    await poll();
    expect(seen).toEqual([0]);
  });
});

it('an aborted poll emits nothing and changes nothing', async () => {
  const { service, poll, log, shutdown, store } = given;
  service.hangs();

  const polling = poll();
  shutdown.waits.abort(new Error('stopping'));

  expect(await polling).toBeUndefined();
  expect(log.events).toEqual([]);
  expect(await store.loadHealth('p')).toMatchObject({ lastPollAt: undefined });
});

it('a listing is not kept as the previous one if the service was replaced during the request', async () => {
  const { poller, service, poll } = given;
  service.shows(listingOf({ a: 'RUNNING' }));
  await poll();
  service.shows(listingOf({ a: 'FAILED' }));
  service.meanwhile(() => poller.dropListings());

  expect(await poll()).toMatchObject({ transitions: 1, prompts: 1 });
  service.shows(listingOf({ a: 'FAILED' }));
  await poll();
  expect(service.asked.at(-1)?.options).toMatchObject({ previous: undefined });
});

it('the table of a listing is freed once the next one is committed, and not before', async () => {
  const { service, poll, broken } = given;
  service.shows(listingOf({ a: 'PENDING' }));
  await poll();
  service.shows(listingOf({ a: 'RUNNING' }));
  broken.add('commitPoll');
  await poll();
  expect(service.freed).toEqual([]);
  broken.clear();
  await poll();
  service.repeats();
  await poll();
  expect(service.freed).toEqual(['1']);
});

it('a watched project continues with the poll health from the store', async () => {
  const { poller, service, poll } = given;
  poller.watch('p', {
    up: false,
    consecutiveFailures: 7,
    reason: 'auth',
    lastPollAt: 1,
    lastSuccessAt: undefined,
  });
  service.fails('auth');

  expect(await poll()).toMatchObject({ failuresBefore: 7, health: { consecutiveFailures: 8 } });
});

describe('a project that another process also polls', () => {
  it('is read in full again after a refused commit, which is not a failed poll', async () => {
    const { service, poll, store, elsewhere, log } = given;
    const previous = () => service.asked.at(-1)?.options.previous;
    service.shows(listingOf({ a: 'RUNNING' }));
    await poll();
    service.shows(listingOf({ a: 'FAILED' }));
    elsewhere.add(() => commitElsewhere(store));

    expect(await poll()).toBeUndefined();
    expect(log.of('poll.finished').length).toBe(1);
    expect(previous()).toBeDefined();
    expect(await poll()).toMatchObject({ transitions: 1 });
    expect(previous()).toBeUndefined();
  });

  it('is not requested if it was lost while its poll waited for its turn', async () => {
    const { service, poll, poller, store, log } = given;
    service.shows(listingOf({ a: 'RUNNING' }));
    service.whileItWaits(() => poller.unwatch('p'));
    expect(await poll()).toBeUndefined();
    expect(log.of('scheduler.started_poll')).toEqual([]);
    expect(await store.statuses({})).toEqual([]);
    await poll();
    expect(await store.statuses({})).toHaveLength(1);
  });

  it.each([
    ['that changed', true, (s: typeof given.service) => s.shows(listingOf({ a: 'FAILED' }))],
    ['that did not change', true, (s: typeof given.service) => s.repeats()],
    ['that changed', false, (s: typeof given.service) => s.shows(listingOf({ a: 'FAILED' }))],
  ])(
    'is not committed with a listing %s if it was lost during the request (owned again: %s)',
    async (_name, isBack, answer) => {
      const { service, poll, poller, store, log } = given;
      const previous = () => service.asked.at(-1)?.options.previous;
      service.shows(listingOf({ a: 'RUNNING' }));
      await poll();
      const health = await store.loadHealth('p');
      log.clear();
      answer(service);
      service.meanwhile(() => {
        poller.unwatch('p');
        if (isBack) poller.watch('p', health);
      });

      expect(await poll()).toBeUndefined();
      expect(log.of('poll.finished')).toEqual([]);
      expect(await store.transitions({})).toEqual([]);
      expect(await store.loadHealth('p')).toEqual(health);
      service.shows(listingOf({ a: 'RUNNING' }));
      await poll();
      expect(previous()).toBeUndefined();
    },
  );
});

/** Commits as another process would, between the load and the commit of this one. */
async function commitElsewhere(store: Store): Promise<void> {
  const { token, listings } = await store.loadKnown('p', ['prompt']);
  const records = [...(listings.get('prompt')?.records.values() ?? [])];
  const health = await store.loadHealth('p');
  await store.commitPoll({
    project: 'p',
    at: 1,
    health,
    token,
    listings: new Map([['prompt', changesOf({ records })]]),
  });
}

describe('durations', () => {
  const PENDING = { a: 'PENDING', b: 'RUNNING' };

  /** Polls `afterMs` later; the listing shows these statuses. */
  async function show(statuses: Readonly<Record<string, string>>, afterMs = 0) {
    given.clock.advance(afterMs);
    given.service.shows(listingOf(statuses));
    await given.poll();
  }

  /** Returns counted durations as `status bucket: count`. */
  async function counted() {
    const states = UNFINISHED_STATUSES.map((status) => ({ project: 'p', status }));
    const durations = await given.store.durations(states, dayOf(given.clock.now()));
    return durations.flatMap(({ status, counts }) =>
      counts.map(({ bucket, count }) => `${status} ${bucket}: ${count}`),
    );
  }

  it('last from the poll that found a status to the poll that found the next one', async () => {
    await show(PENDING);
    await show({ a: 'RUNNING', b: 'RUNNING' }, 29_000);
    await show({ a: 'COMPLETED', b: 'FAILED' }, 29_000);
    expect(await counted()).toEqual([
      `PENDING ${bucketOf(30_000)}: 1`,
      `RUNNING ${bucketOf(30_000)}: 1`,
      `RUNNING ${bucketOf(60_000)}: 1`,
    ]);
  });

  it('are not counted for a status during which polls were missing', async () => {
    await show(PENDING);
    await show({ a: 'RUNNING', b: 'RUNNING' }, 200_000);
    await show({ a: 'COMPLETED', b: 'COMPLETED' }, 29_000);
    expect(await counted()).toEqual([`RUNNING ${bucketOf(30_000)}: 1`]);
  });

  it('are counted once if the commit fails and is repeated', async () => {
    await show(PENDING);
    given.broken.add('commitPoll');
    await show({ a: 'PENDING', b: 'COMPLETED' });
    expect(await counted()).toEqual([]);
    given.broken.clear();
    await show({ a: 'PENDING', b: 'COMPLETED' });
    await show({ a: 'PENDING', b: 'COMPLETED' });
    expect(await counted()).toEqual([`RUNNING ${bucketOf(2000)}: 1`]);
  });

  it('are not counted in a poll whose dataset listing fails', async () => {
    given.service.showsDatasets(listingOf({}));
    await show(PENDING);
    given.service.shows(listingOf({ a: 'RUNNING', b: 'COMPLETED' }));
    given.service.failsDatasets('server_error');
    await given.poll({ id: 'p', datasets: true });
    expect(await counted()).toEqual([]);
  });
});
