import { expect, it } from 'vitest';
import { inTurns } from '../../../src/domain/turns.ts';

it('inTurns handles the first slice at once, and lets other work run before each further one', async () => {
  const seen: (number | string)[] = [];
  const other = () => {
    seen.push('other');
    if (seen.length < 9) setImmediate(other);
  };
  setImmediate(other);
  const done = inTurns([1, 2, 3, 4, 5], (item) => seen.push(item), 2);
  expect(seen).toEqual([1, 2]);
  await done;
  expect(seen.slice(0, 7)).toEqual([1, 2, 'other', 3, 4, 'other', 5]);
});

it('two loops never handle a slice in the same turn, but each its first one', async () => {
  const seen: string[] = [];
  const other = () => {
    seen.push('|');
    if (seen.length < 20) setImmediate(other);
  };
  setImmediate(other);
  const loop = (name: string) => inTurns([1, 2, 3], (item) => seen.push(`${name}${item}`), 1);
  await Promise.all([loop('a'), loop('b')]);
  expect(seen.join('').replaceAll(/\|+/g, '|')).toBe('a1b1|a2|b2|a3|b3');
});

it('inTurns handles each item once, in order, and takes no turn for few of them', async () => {
  let turns = 0;
  const count = () => {
    turns += 1;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  const seen: number[] = [];
  await inTurns([], (item: number) => seen.push(item), 3);
  await inTurns([1, 2, 3], (item) => seen.push(item), 3);
  expect(turns).toBe(0);
  await inTurns(Array(10_000).keys(), (item) => seen.push(item));
  clearImmediate(next);
  expect(turns).toBeGreaterThanOrEqual(2);
  expect(seen).toEqual([1, 2, 3, ...Array(10_000).keys()]);
});
