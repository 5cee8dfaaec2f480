import { expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import type { Clock } from '../../../src/monitor/ports/clock.ts';
import { Scheduler } from '../../../src/schedule/scheduler.ts';
import { PATIENCE } from '../../support/evalwatch.ts';

it('the scheduler polls every second by real timers, and leaves none when it is stopped', async () => {
  const waiting = new Set<object>();
  const startedAt = Date.now();
  /** Ten times as fast as real time. */
  const clock: Clock = {
    ...systemClock,
    now: () => startedAt + 10 * (Date.now() - startedAt),
    monotonic: () => 10 * performance.now(),
    timeout: (ms, run) => {
      const id = {};
      waiting.add(id);
      const timer = systemClock.timeout(ms / 10, () => {
        waiting.delete(id);
        run();
      });
      const cancel = () => {
        waiting.delete(id);
        timer.cancel();
      };
      return { ...timer, cancel };
    },
  };
  const polls: { dueAt: number; at: number }[] = [];
  const scheduler = new Scheduler({
    run: (_, { dueAt }) => {
      polls.push({ dueAt, at: clock.now() });
      return Promise.resolve();
    },
    clock,
    emit: () => undefined,
    onError: (error) => expect.fail(String(error)),
  });
  const schedule = { schedule: '* * * * * *', timezone: 'UTC' };
  scheduler.set([{ id: 'bot', ...schedule, lastPollAt: undefined, isOwnedElsewhere: false }], 0);
  scheduler.start();
  await vi.waitFor(() => expect(polls.length).toBeGreaterThan(3), PATIENCE);
  scheduler.stop();
  await scheduler.idle();
  const count = polls.length;
  const seconds = new Set(polls.slice(1).map(({ dueAt }) => dueAt));
  expect(seconds.size).toBe(count - 1);
  for (const { dueAt, at } of polls.slice(1)) {
    expect(dueAt % 1000).toBe(0);
    expect(at).toBeGreaterThanOrEqual(dueAt);
  }
  expect(waiting.size).toBe(0);
});
