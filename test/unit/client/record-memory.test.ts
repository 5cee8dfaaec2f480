import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { RecordMemory } from '../../../src/client/record-memory.ts';

const MIB = 1024 * 1024;

/** Returns whether a promise has resolved by now; true for undefined. */
async function isOver(wait: Promise<void> | undefined): Promise<boolean> {
  let over = wait === undefined;
  const watch = async () => {
    await wait;
    over = true;
  };
  void watch();
  await setImmediate();
  return over;
}

it('only one large listing is read at a time; small ones do not wait', async () => {
  const memory = new RecordMemory();
  const [first, second, small] = [
    memory.readListing(false),
    memory.readListing(false),
    memory.readListing(false),
  ];
  expect(await isOver(first.take(5 * MIB))).toBe(true);
  const waiting = second.take(5 * MIB);
  expect(await isOver(waiting)).toBe(false);
  expect(small.take(MIB)).toBeUndefined();
  first.end();
  expect(await isOver(waiting)).toBe(true);
  expect(await isOver(second.take(MIB))).toBe(true);
});

it('a large listing of a failing project delays none of a healthy one', async () => {
  const memory = new RecordMemory();
  const [failing, other] = [memory.readListing(true), memory.readListing(true)];
  void failing.take(5 * MIB);
  expect(await isOver(other.take(5 * MIB))).toBe(false);
  expect(await isOver(memory.readListing(false).take(5 * MIB))).toBe(true);
});

it('a listing that ends while it waits does not keep others waiting', async () => {
  const memory = new RecordMemory();
  const [first, gone, last] = [
    memory.readListing(false),
    memory.readListing(false),
    memory.readListing(false),
  ];
  void first.take(5 * MIB);
  void gone.take(5 * MIB);
  const waiting = last.take(5 * MIB);
  gone.end();
  expect(await isOver(waiting)).toBe(false);
  first.end();
  expect(await isOver(waiting)).toBe(true);
});

it('a listing that has ended waits for nothing, so that nothing keeps its items', async () => {
  const memory = new RecordMemory();
  const [first, second] = [memory.readListing(false), memory.readListing(false)];
  const storing = memory.storing(33 * MIB);
  const waits = [first.take(5 * MIB), second.take(5 * MIB), second.untilStored()];
  second.end();
  expect(await isOver(waits[0])).toBe(false);
  expect(await isOver(waits[1])).toBe(true);
  expect(await isOver(waits[2])).toBe(true);
  storing[Symbol.dispose]();
  expect(await isOver(waits[0])).toBe(true);
});

it('a listing with records waits while more than 32 MiB wait for the store', async () => {
  const memory = new RecordMemory();
  const [large, small, unchanged] = [
    memory.readListing(false),
    memory.readListing(false),
    memory.readListing(false),
  ];
  const [one, other] = [memory.storing(20 * MIB), memory.storing(13 * MIB)];
  void small.take(1);
  const waits = [large.take(5 * MIB), small.untilStored()];
  expect(await isOver(waits[0])).toBe(false);
  expect(await isOver(waits[1])).toBe(false);
  expect(await isOver(unchanged.untilStored())).toBe(true);
  one[Symbol.dispose]();
  expect(await isOver(waits[0])).toBe(true);
  expect(await isOver(waits[1])).toBe(true);
  // One that is read alone waits again: the poll of the one before it may get to the store meanwhile.
  const again = memory.storing(20 * MIB);
  const waiting = large.take(1);
  expect(await isOver(waiting)).toBe(false);
  other[Symbol.dispose]();
  expect(await isOver(waiting)).toBe(true);
  again[Symbol.dispose]();
});

it('a poll with records counts as 64 KiB at least while it waits for the store', async () => {
  const memory = new RecordMemory();
  const stored = Array.from({ length: 513 }, () => memory.storing(1000));
  memory.storing(0);
  const listing = memory.readListing(false);
  void listing.take(1000);
  const waiting = listing.untilStored();
  expect(await isOver(waiting)).toBe(false);
  stored[0]?.[Symbol.dispose]();
  expect(await isOver(waiting)).toBe(true);
});
