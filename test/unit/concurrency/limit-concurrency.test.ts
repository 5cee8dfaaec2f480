import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { limitConcurrency } from '../../../src/concurrency/limit-concurrency.ts';

it('a limit of 1 runs work one at a time and in order, even if some fails', async () => {
  const serialQueue = limitConcurrency(1);
  const done: string[] = [];
  const work = (name: string) => async () => {
    done.push(`${name} begins`);
    await setImmediate();
    done.push(`${name} ends`);
    if (name === 'b') throw new Error('b fails');
    return name;
  };
  const outcomes = await Promise.allSettled(['a', 'b', 'c'].map((name) => serialQueue(work(name))));
  expect(done).toEqual(['a', 'b', 'c'].flatMap((name) => [`${name} begins`, `${name} ends`]));
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(await serialQueue(work('d'))).toBe('d');
});

it('a result is not kept in memory after its work has ended', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const serialQueue = limitConcurrency(1);
  const read = async () =>
    new WeakRef(await serialQueue(async () => await Promise.resolve({ records: [] })));
  const listing = await read();
  await setImmediate();
  collect();
  expect(listing.deref()).toBeUndefined();
  expect(await serialQueue(async () => await Promise.resolve('next'))).toBe('next');
});

it('a limit of 2 runs at most two at a time', async () => {
  const limit = limitConcurrency(2);
  let running = 0;
  let most = 0;
  const work = async () => {
    running += 1;
    most = Math.max(most, running);
    await setImmediate();
    running -= 1;
  };
  await Promise.all(Array.from({ length: 7 }, () => limit(work)));
  expect(most).toBe(2);
});

it('work that has waited too long, or waits at an abort, is rejected and never runs', async () => {
  const stop = new AbortController();
  let maxMs = 1;
  const error = () => new Error('waited in vain');
  const limit = limitConcurrency(1, {
    maxMs: () => maxMs,
    timeout: (ms, callback) => systemClock.timeout(ms, callback),
    signal: stop.signal,
    error,
  });
  const first = Promise.withResolvers<string>();
  const ran: string[] = [];
  const running = limit(() => first.promise);
  await expect(limit(async () => ran.push('late'))).rejects.toThrow('waited in vain');
  maxMs = 60_000;
  const waiting = limit(async () => ran.push('aborted'));
  stop.abort();
  await expect(waiting).rejects.toThrow('waited in vain');
  first.resolve('done');
  expect(await running).toBe('done');
  await limit(async () => ran.push('next'));
  expect(ran).toEqual(['next']);
});
