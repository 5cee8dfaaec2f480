import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { createLane } from '../../../src/evaluation-api/fairness/lane.ts';

it('does one thing after the other, in their order, whatever fails', async () => {
  const lane = createLane();
  const done: string[] = [];
  const work = (name: string) => async () => {
    done.push(`${name} begins`);
    await setImmediate();
    done.push(`${name} ends`);
    if (name === 'b') throw new Error('b fails');
    return name;
  };
  const outcomes = await Promise.allSettled(['a', 'b', 'c'].map((name) => lane(work(name))));
  expect(done).toEqual(['a', 'b', 'c'].flatMap((name) => [`${name} begins`, `${name} ends`]));
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(await lane(work('d'))).toBe('d');
});

it('keeps nothing of what came of them', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const lane = createLane();
  const read = async () =>
    new WeakRef(await lane(async () => await Promise.resolve({ records: [] })));
  const listing = await read();
  await setImmediate();
  collect();
  expect(listing.deref()).toBeUndefined();
  expect(await lane(async () => await Promise.resolve('next'))).toBe('next');
});
