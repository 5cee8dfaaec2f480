import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { createScheduler } from '../../../src/schedule/scheduler.ts';
import { PATIENCE } from '../../support/evalwatch.ts';

it('the scheduler polls every second of real time, and not after it is stopped', async () => {
  const polls: { dueAt: number; at: number }[] = [];
  const scheduler = createScheduler({
    run: (_, { dueAt }) => {
      polls.push({ dueAt, at: systemClock.now() });
      return Promise.resolve();
    },
    clock: systemClock,
    emit: () => undefined,
    onError: (error) => expect.fail(String(error)),
  });
  const schedule = { schedule: '* * * * * *', timezone: 'UTC' };
  scheduler.set([{ id: 'bot', ...schedule, lastPollAt: undefined }], 0);
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
  await sleep(1200);
  expect(polls.length).toBe(count);
});
