import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import type { Engine } from '../../../src/app/engine.ts';
import { createScheduling } from '../../../src/app/scheduling.ts';
import type { FinishedPoll, MonitorEvent } from '../../../src/monitor/events.ts';

const PROJECT = { id: 'p', schedule: '*/10 * * * * *', timezone: 'UTC' };
const OTHER = { ...PROJECT, id: 'other' };
const FINISHED = { project: 'p' } as FinishedPoll;

beforeEach(() => void vi.useFakeTimers({ now: Date.parse('2026-11-21T10:00:00.250Z') }));
afterEach(() => vi.useRealTimers());

/** A project that is due every ten seconds, and polls that last until they are released. */
function setUp(owned = new Set(['p'])) {
  const events: MonitorEvent[] = [];
  const polls: PromiseWithResolvers<FinishedPoll | undefined>[] = [];
  const lastPollAt = Date.now();
  const projects = new Map([PROJECT, OTHER].map((project) => [project.id, project]));
  let changeOwnership: (changed: readonly string[] | undefined) => void = () => {};
  const engine = {
    emit: (event: MonitorEvent) => events.push(event),
    mayPoll: (id: string) => owned.has(id),
    poll: () => {
      const poll = Promise.withResolvers<FinishedPoll | undefined>();
      polls.push(poll);
      return poll.promise;
    },
    health: () => ({ lastPollAt }),
    config: () => ({ jitterMs: 0, projects: [...projects.values()] }),
    configured: (id: string) => projects.get(id),
    onOwnershipChange: (listener: typeof changeOwnership) => {
      changeOwnership = listener;
    },
  };
  const scheduling = createScheduling(engine as unknown as Engine, systemClock);
  scheduling.apply();
  scheduling.start();
  return { scheduling, polls, events, changeOwnership };
}

it('a scheduled run that comes due during a requested poll starts after it, and is not skipped', async () => {
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

it('a project is polled on request once at a time, and not after the stop', async () => {
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

it('schedules what is taken and unschedules what is dropped, without a look at the others', async () => {
  const owned = new Set<string>();
  const { scheduling, polls, changeOwnership } = setUp(owned);
  owned.add('p').add('other');
  changeOwnership(['p', 'not configured']);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(polls.length).toBe(1);

  changeOwnership(undefined);
  owned.delete('p');
  changeOwnership(['p']);
  polls[0]?.resolve(FINISHED);
  await vi.advanceTimersByTimeAsync(10_000);

  expect([polls.length, scheduling.isPolling('other')]).toEqual([2, true]);
  scheduling.stop();
});
