import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import {
  createRecordBudget,
  type ReadingBudget,
  type RecordBudget,
} from '../../../src/evaluation-api/listing/record-budget.ts';

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

it('lets a listing that is alone take any number', () => {
  const reading = createRecordBudget(10 * MIB, systemClock).readListing();
  reading.take(8 * MIB);
  reading.take(80 * MIB);
  expect(reading.bytes()).toBe(88 * MIB);
  expect(reading.untilRoom()).toBeUndefined();
});

it('holds up every listing while more than the limit is stored', async () => {
  const budget = createRecordBudget(10 * MIB, systemClock);
  const [begun, fresh] = [budget.readListing(), budget.readListing()];
  begun.take(4 * MIB);
  const stored = store(budget, 12 * MIB);
  const waits = [waitOf(begun), waitOf(fresh)];
  await pass();
  expect(waits).toEqual([{ isOver: false }, { isOver: false }]);
  stored[Symbol.dispose]();
  await pass();
  expect(waits).toEqual([{ isOver: true }, { isOver: true }]);
});

it('counts a small listing that is stored as 64 KiB', () => {
  const budget = createRecordBudget(MIB, systemClock);
  const stored = Array.from({ length: 16 }, () => store(budget, 1000));
  const reading = budget.readListing();
  reading.take(1000);
  expect(reading.untilStored()).toBeDefined();
  stored[0]?.[Symbol.dispose]();
  expect(reading.untilStored()).toBeUndefined();
});

it('does not hold up a listing for less than it has taken itself', () => {
  const budget = createRecordBudget(10 * MIB, systemClock);
  const reading = budget.readListing();
  reading.take(20 * MIB);
  using _ = store(budget, MIB);
  expect(reading.untilRoom()).toBeUndefined();
});

it('lets only the first of large listings go on that are too large together, and small ones', async () => {
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

it('holds up a listing that was read for what is stored, not for what others read', async () => {
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

it('lets no large listing wait for a small one that began before and stalls', () => {
  const budget = createRecordBudget(10 * MIB, systemClock);
  const [stalled, large] = [budget.readListing(), budget.readListing()];
  stalled.take(MIB - 1);
  large.take(20 * MIB);
  expect(large.untilRoom()).toBeUndefined();
});

it('counts the records of polls that wait for another listing, but never holds up the first one for them', async () => {
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

it('lets a listing go on by a little after a while, as its connection would be cut', async () => {
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

it('gives the same wait to every caller, and forgets it when it is over', async () => {
  const budget = createRecordBudget(MIB, systemClock);
  const reading = budget.readListing();
  const stored = store(budget, 8 * MIB);
  expect(reading.untilRoom()).toBe(reading.untilRoom());
  stored[Symbol.dispose]();
  expect(reading.untilRoom()).toBeUndefined();
  expect(vi.getTimerCount()).toBe(0);
});

it('holds up no listing that has ended, and counts nothing more of it', async () => {
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
