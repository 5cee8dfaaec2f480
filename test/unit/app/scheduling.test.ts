import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import type { Engine } from '../../../src/app/engine.ts';
import { Scheduling } from '../../../src/app/scheduling.ts';
import {
  emitTo,
  type FinishedPoll,
  type MonitorEvent,
  type Observer,
} from '../../../src/monitor/events.ts';

const PROJECT = { schedule: '*/10 * * * * *', timezone: 'UTC' };
const FINISHED = { project: 'p' } as FinishedPoll;
/** Ends the turn of the event loop. */
const turn = () => vi.advanceTimersByTimeAsync(0);

beforeEach(() => void vi.useFakeTimers({ now: Date.parse('2026-11-21T10:00:00.250Z') }));
afterEach(() => vi.useRealTimers());

/** Sets up projects that are due every ten seconds and polls that a test ends. */
function setUp(owned = new Set(['p']), projectIds = ['p', 'other']) {
  const events: MonitorEvent[] = [];
  const observers: Observer[] = [];
  const polls: (PromiseWithResolvers<FinishedPoll | undefined> & { readonly id: string })[] = [];
  const lastPollAt = Date.now();
  const projects = new Map(projectIds.map((id) => [id, { ...PROJECT, id }]));
  let changeOwnership = () => {};
  const engine = {
    emit: (event: MonitorEvent) => events.push(event),
    observe: (observer: Observer) => observers.push(observer),
    mayPoll: (id: string) => owned.has(id),
    poll: (id: string) => {
      const poll = Promise.withResolvers<FinishedPoll | undefined>();
      polls.push({ ...poll, id });
      return poll.promise;
    },
    health: (id: string) => ({ lastPollAt, consecutiveFailures: id.startsWith('failing') ? 1 : 0 }),
    config: () => ({ jitterMs: 0, projects: [...projects.values()] }),
    projects: () => projects,
    worker: {
      onChange: (listener: typeof changeOwnership) => {
        changeOwnership = listener;
      },
    },
  };
  const scheduling = new Scheduling(engine as unknown as Engine, systemClock);
  scheduling.apply();
  scheduling.start();
  const emit = emitTo(observers, (error) => {
    throw error;
  });
  return { scheduling, polls, events, emit, changeOwnership };
}

it('a scheduled run that comes due during a requested poll starts after it', async () => {
  const { scheduling, polls, events } = setUp();
  const requested = scheduling.pollNow('p');
  await vi.advanceTimersByTimeAsync(11_000);
  expect(polls.length).toBe(1);

  polls[0]?.resolve(FINISHED);
  expect(await requested).toBe(FINISHED);
  await vi.advanceTimersByTimeAsync(0);

  expect(polls.length).toBe(2);
  expect(await scheduling.pollNow('p')).toBeUndefined();
  expect([polls.length, events]).toEqual([2, []]);
  scheduling.stop();
});

it('a project has at most one requested poll at a time, and none after the stop', async () => {
  const { scheduling, polls } = setUp();
  const requested = scheduling.pollNow('p');
  expect(scheduling.isPolling('p')).toBe(true);
  expect(await scheduling.pollNow('p')).toBeUndefined();
  // A run that waits for the requested poll does not begin after the stop.
  await vi.advanceTimersByTimeAsync(11_000);
  scheduling.stop();
  const onIdle = vi.fn<() => void>();
  const idle = scheduling.idle().then(onIdle);
  await vi.advanceTimersByTimeAsync(0);
  expect(onIdle).not.toHaveBeenCalled();

  polls[0]?.resolve(FINISHED);
  await Promise.all([requested, idle]);

  expect(scheduling.isPolling('p')).toBe(false);
  expect(await scheduling.pollNow('p')).toBeUndefined();
  expect(polls.length).toBe(1);
});

it('changes of ownership in one turn of the event loop are applied once, in the next', async () => {
  const owned = new Set<string>();
  const { polls, scheduling, changeOwnership } = setUp(owned);
  const apply = vi.spyOn(scheduling, 'apply');
  owned.add('p').add('other');
  for (let change = 0; change < 1000; change += 1) changeOwnership();
  expect(apply).not.toHaveBeenCalled();
  await turn();
  await vi.advanceTimersByTimeAsync(10_000);
  expect([apply.mock.calls.length, polls.length]).toEqual([1, 2]);

  owned.delete('p');
  changeOwnership();
  await turn();
  for (const poll of polls) poll.resolve(FINISHED);
  await vi.advanceTimersByTimeAsync(10_000);

  expect(apply.mock.calls.length).toBe(2);
  expect(polls.map(({ id }) => id).toSorted()).toEqual(['other', 'other', 'p']);
  scheduling.stop();
});

describe('a schedule with more than 1000 healthy projects that are due', () => {
  const healthy = Array.from({ length: 1003 }, (_, index) => `p${index}`);
  const all = [...healthy, 'failing'];
  const dueSetUp = async () => {
    const set = setUp(new Set(all), all);
    await vi.advanceTimersByTimeAsync(10_000);
    return { ...set, begun: () => set.polls.map(({ id }) => id) };
  };

  it('begins the polls of the first 1000, and those of failing projects', async () => {
    const { scheduling, begun } = await dueSetUp();
    expect(begun().toSorted()).toEqual([...healthy.slice(0, 1000), 'failing'].toSorted());
    scheduling.stop();
  });

  it('begins the next poll when one sends its first request, or ends without one', async () => {
    const { scheduling, polls, events, emit, begun } = await dueSetUp();
    emit({ type: 'scheduler.started_poll', project: 'p7', lagMs: 0 });
    await vi.advanceTimersByTimeAsync(0);
    expect(begun().slice(1001)).toEqual(['p1000']);
    // p7 has made room already.
    polls.find(({ id }) => id === 'p7')?.resolve(FINISHED);
    await vi.advanceTimersByTimeAsync(0);
    expect([begun().slice(1001), scheduling.isPolling('p7')]).toEqual([['p1000'], false]);

    polls.find(({ id }) => id === 'p8')?.resolve(undefined);
    await vi.advanceTimersByTimeAsync(0);
    expect(begun().slice(1001)).toEqual(['p1000', 'p1001']);
    expect(scheduling.isPolling('p1002')).toBe(true);
    expect(events).toEqual([]);
    scheduling.stop();
  });

  it('begins no further poll after the stop', async () => {
    const { scheduling, polls, begun } = await dueSetUp();
    scheduling.stop();
    for (const { resolve } of polls) resolve(undefined);
    await scheduling.idle();
    expect(begun()).toHaveLength(1001);
  });
});
