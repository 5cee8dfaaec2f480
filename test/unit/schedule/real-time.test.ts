import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { createScheduler } from '../../../src/schedule/scheduler.ts';

it('polls every second of real time, and no more after the stop', async () => {
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
  await sleep(3200);
  scheduler.stop();
  await scheduler.idle();
  const count = polls.length;
  expect(count).toBeGreaterThanOrEqual(2);
  expect(count).toBeLessThanOrEqual(5);
  for (const { dueAt, at } of polls.slice(1)) {
    expect(dueAt % 1000).toBe(0);
    expect(at).toBeGreaterThanOrEqual(dueAt);
  }
  await sleep(1200);
  expect(polls.length).toBe(count);
});
