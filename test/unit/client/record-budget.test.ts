import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import {
  createRecordBudget,
  type ReadingBudget,
  type RecordBudget,
} from '../../../src/client/listing/record-budget.ts';

const MIB = 1024 * 1024;

/** Waits for room for a listing; `isOver` is true when the wait is over. */
function waitOf(reading: ReadingBudget): { isOver: boolean } {
  const wait = { isOver: false };
  const waitForRoom = async () => {
    await reading.untilRoom();
    wait.isOver = true;
  };
  void waitForRoom();
  return wait;
}

/** Adds records of this size that wait for the store. */
function store(budget: RecordBudget, bytes: number) {
  const held = budget.holdRecords();
  held.add(bytes);
  held.waitForStore();
  return held;
}

/** Lets time pass, and lets every promise resolve that can. */
async function pass(ms = 0): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it('a small listing that waits for the store counts as 64 KiB', () => {
  const budget = createRecordBudget(MIB, systemClock);
  const stored = Array.from({ length: 16 }, () => store(budget, 1000));
  const reading = budget.readListing();
  reading.take(1000);
  expect(reading.untilStored()).toBeDefined();
  stored[0]?.[Symbol.dispose]();
  expect(reading.untilStored()).toBeUndefined();
});

it('a listing does not wait for records in the store queue that are smaller than itself', () => {
  const budget = createRecordBudget(10 * MIB, systemClock);
  const reading = budget.readListing();
  reading.take(20 * MIB);
  using _ = store(budget, MIB);
  expect(reading.untilRoom()).toBeUndefined();
});

it('only the first of several large listings continues above the limit; small ones do not wait', async () => {
  const budget = createRecordBudget(10 * MIB, systemClock);
  const [first, second, small] = [budget.readListing(), budget.readListing(), budget.readListing()];
  first.take(8 * MIB);
  second.take(2 * MIB);
  expect(second.untilRoom()).toBeUndefined();
  small.take(1000);
  expect(first.untilRoom()).toBeUndefined();
  expect(small.untilRoom()).toBeUndefined();
  const wait = waitOf(second);
  await pass();
  expect(wait.isOver).toBe(false);
  first.end();
  await pass();
  expect(wait.isOver).toBe(true);
});

it('a listing that was read to its end waits for the store, but not for other listings', async () => {
  const budget = createRecordBudget(10 * MIB, systemClock);
  const [first, second, known] = [budget.readListing(), budget.readListing(), budget.readListing()];
  first.take(8 * MIB);
  second.take(4 * MIB);
  const wait = waitOf(second);
  await pass();
  expect(wait.isOver).toBe(false);
  expect(second.untilStored()).toBeUndefined();
  await pass();
  expect(wait.isOver).toBe(true);

  const stored = store(budget, 9 * MIB);
  expect(known.untilStored()).toBeUndefined();
  expect(second.untilStored()).toBeInstanceOf(Promise);
  stored[Symbol.dispose]();
  expect(second.untilStored()).toBeUndefined();
});

it('a large listing does not wait for a stalled small one that began earlier', () => {
  const budget = createRecordBudget(10 * MIB, systemClock);
  const [stalled, large] = [budget.readListing(), budget.readListing()];
  stalled.take(MIB - 1);
  large.take(20 * MIB);
  expect(large.untilRoom()).toBeUndefined();
});

it('records of polls that wait for another listing count, but do not block the first listing', async () => {
  const budget = createRecordBudget(10 * MIB, systemClock);
  const kept = budget.holdRecords();
  kept.add(20 * MIB);
  const [first, second] = [budget.readListing(), budget.readListing()];
  first.take(2 * MIB);
  second.take(2 * MIB);
  expect(first.untilRoom()).toBeUndefined();
  const wait = waitOf(second);
  await pass();
  expect(wait.isOver).toBe(false);
  kept[Symbol.dispose]();
  await pass();
  expect(wait.isOver).toBe(true);
});

it('a waiting listing may read 512 KiB more after 10 s, so that its connection is not cut', async () => {
  const budget = createRecordBudget(10 * MIB, systemClock);
  const reading = budget.readListing();
  reading.take(2 * MIB);
  using _ = store(budget, 20 * MIB);
  const wait = waitOf(reading);
  await pass(9999);
  expect(wait.isOver).toBe(false);
  await pass(1);
  expect(wait.isOver).toBe(true);
  expect(reading.untilRoom()).toBeUndefined();
  reading.take(MIB / 2);
  const next = waitOf(reading);
  await pass();
  expect(next.isOver).toBe(false);
});

it('a listing that has ended no longer waits, and its bytes no longer count', async () => {
  const budget = createRecordBudget(MIB, systemClock);
  const reading = budget.readListing();
  reading.take(2 * MIB);
  const stored = store(budget, 8 * MIB);
  const wait = waitOf(reading);
  reading.end();
  reading.end();
  reading.take(20 * MIB);
  await pass();
  expect(wait.isOver).toBe(true);
  stored[Symbol.dispose]();
  const [first, second] = [budget.readListing(), budget.readListing()];
  first.take(MIB);
  second.take(MIB);
  expect(first.untilRoom()).toBeUndefined();
  first.end();
  expect(second.untilRoom()).toBeUndefined();
});
