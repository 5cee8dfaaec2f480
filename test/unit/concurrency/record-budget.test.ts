import { expect, it } from 'vitest';
import { createRecordBudget, type ReadingBudget } from '../../../src/concurrency/record-budget.ts';

const MIB = 1024 * 1024;

/** Lets the listing wait as long as it has to; `isOver` tells whether it still does. */
function waitOf(reading: ReadingBudget): { isOver: boolean } {
  const wait = { isOver: false };
  const waitForRoom = async () => {
    await reading.untilRoom();
    wait.isOver = true;
  };
  void waitForRoom();
  return wait;
}

/** Lets every promise that can resolve do so. */
async function settle(): Promise<void> {
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
}

it('lets a listing that is alone take any number', () => {
  const reading = createRecordBudget(10 * MIB).readListing();
  reading.take(8 * MIB);
  reading.take(80 * MIB);
  expect(reading.bytes()).toBe(88 * MIB);
  expect(reading.untilRoom()).toBeUndefined();
});

it('holds up every listing while more than the limit is stored', async () => {
  const budget = createRecordBudget(10 * MIB);
  const [begun, fresh] = [budget.readListing(), budget.readListing()];
  begun.take(4 * MIB);
  const stored = budget.store(12 * MIB);
  const waits = [waitOf(begun), waitOf(fresh)];
  await settle();
  expect(waits).toEqual([{ isOver: false }, { isOver: false }]);
  stored[Symbol.dispose]();
  await settle();
  expect(waits).toEqual([{ isOver: true }, { isOver: true }]);
});

it('does not hold up a listing for less than it has taken itself', () => {
  const budget = createRecordBudget(10 * MIB);
  const reading = budget.readListing();
  reading.take(20 * MIB);
  using _ = budget.store(MIB);
  expect(reading.untilRoom()).toBeUndefined();
});

it('lets only the first of large listings go on that are too large together, and small ones', async () => {
  const budget = createRecordBudget(10 * MIB);
  const [first, second, small] = [budget.readListing(), budget.readListing(), budget.readListing()];
  first.take(8 * MIB);
  second.take(2 * MIB);
  expect(second.untilRoom()).toBeUndefined();
  small.take(1000);
  expect(first.untilRoom()).toBeUndefined();
  expect(small.untilRoom()).toBeUndefined();
  const wait = waitOf(second);
  await settle();
  expect(wait.isOver).toBe(false);
  first.end();
  await settle();
  expect(wait.isOver).toBe(true);
});

it('counts a listing as first when its body begins, not when it is requested', () => {
  const budget = createRecordBudget(10 * MIB);
  // It may wait for a slot that the others hold.
  budget.readListing();
  const reading = budget.readListing();
  reading.take(20 * MIB);
  expect(reading.untilRoom()).toBeUndefined();
});

it('holds up no listing that has ended', async () => {
  const budget = createRecordBudget(MIB);
  using _ = budget.store(8 * MIB);
  const reading = budget.readListing();
  const wait = waitOf(reading);
  reading.end();
  await settle();
  expect(wait.isOver).toBe(true);
});
