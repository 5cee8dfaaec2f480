import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { RecordMemory } from '../../../src/client/record-memory.ts';

const MIB = 1024 * 1024;

/** Returns whether a promise has resolved by now. */
async function isOver(wait: Promise<void> | undefined): Promise<boolean> {
  let over = false;
  const watch = async () => {
    await wait;
    over = true;
  };
  void watch();
  await setImmediate();
  return over;
}

it('a listing that has ended waits for nothing, so that nothing keeps its items', async () => {
  const memory = new RecordMemory();
  const [first, second] = [memory.readListing(false), memory.readListing(false)];
  using _ = memory.storing(33 * MIB);
  const table = second.makeTable(MIB, () => Promise.resolve());
  const waits = [first.take(5 * MIB), second.take(5 * MIB), table];
  second.end();
  expect(await Promise.all(waits.map(isOver))).toEqual([false, true, true]);
});

it('a large listing that is read alone waits while more than 16 MiB wait for the store', async () => {
  const memory = new RecordMemory();
  const large = memory.readListing(false);
  expect(await isOver(large.take(5 * MIB))).toBe(true);
  const stored = memory.storing(33 * MIB);
  const waiting = large.take(1);
  expect(await isOver(waiting)).toBe(false);
  stored[Symbol.dispose]();
  expect(await isOver(waiting)).toBe(true);
});

it('makes tables one after the other, while at most 16 MiB wait for the store', async () => {
  const memory = new RecordMemory();
  let running = 0;
  const make = async () => {
    running += 1;
    expect(running).toBe(1);
    await setImmediate();
    running -= 1;
  };
  const listings = [memory.readListing(false), memory.readListing(false)];
  const making = listings.map((listing) => listing.makeTable(33 * MIB, make));
  await making[0];
  const stored = memory.storing(33 * MIB);
  await setImmediate();
  expect(await isOver(making[1])).toBe(false);
  stored[Symbol.dispose]();
  expect(await isOver(making[1])).toBe(true);
});
