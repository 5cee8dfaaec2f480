import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { pieces } from '../../support/pieces.ts';
import { afterLearning } from '../../../src/app/first-scrape.ts';

const HOUR_MS = 3_600_000;

it('a scrape waits until the limits are learned', async () => {
  const learned = Promise.withResolvers<void>();
  const done: string[] = [];
  const render = afterLearning(() => pieces('metrics'), learned.promise, HOUR_MS);
  const scrape = text(render()).then((rendered) => done.push(rendered));
  await new Promise(setImmediate);
  expect(done).toEqual([]);
  learned.resolve();
  await scrape;
  expect([...done, await text(render())]).toEqual(['metrics', 'metrics']);
});

it('a scrape does not wait longer than allowed', async () => {
  const never = new Promise<void>(() => {});
  const render = afterLearning(() => pieces('metrics'), never, 1);
  expect(await text(render())).toBe('metrics');
});

it('a scrape fails if learning the limits fails', async () => {
  const bug = Promise.reject(new Error('bug'));
  const render = afterLearning(() => pieces('metrics'), bug, HOUR_MS);
  await expect(text(render())).rejects.toThrow('bug');
});
