import { expect, it } from 'vitest';
import { afterLearning } from '../../../src/app/first-scrape.ts';

const HOUR_MS = 3_600_000;

it('a scrape waits until the limits are learned', async () => {
  const learned = Promise.withResolvers<void>();
  const done: string[] = [];
  const render = afterLearning(async () => 'metrics', learned.promise, HOUR_MS);
  const scrape = render().then((text) => done.push(text));
  await new Promise(setImmediate);
  expect(done).toEqual([]);
  learned.resolve();
  await scrape;
  expect([...done, await render()]).toEqual(['metrics', 'metrics']);
});

it('a scrape does not wait longer than allowed', async () => {
  const never = new Promise<void>(() => {});
  expect(await afterLearning(async () => 'metrics', never, 1)()).toBe('metrics');
});

it('a bug in the learning is not hidden', async () => {
  const bug = Promise.reject(new Error('bug'));
  await expect(afterLearning(async () => 'metrics', bug, HOUR_MS)()).rejects.toThrow('bug');
});
