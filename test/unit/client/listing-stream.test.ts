import { expect, it } from 'vitest';
import { createRecordMemory } from '../../../src/client/listing/record-memory.ts';
import { createItemScanner } from '../../../src/client/listing/item-scanner.ts';
import {
  createListingStream,
  type StreamOptions,
} from '../../../src/client/listing/listing-stream.ts';
import type { ListingBasis } from '../../../src/monitor/ports/service.ts';
import { createStepQueue, type StepQueue } from '../../../src/monitor/step-queue.ts';

const scrub = (text: string) => text;
const startScan = createItemScanner(1_000_000);
const { signal } = new AbortController();
const item = (index: number) => ({ id: `p${index}`, status: 'RUNNING', name: 'n'.repeat(1000) });
const body = Buffer.from(JSON.stringify(Array.from({ length: 3000 }, (_, index) => item(index))));
const PIECE = 64 * 1024;

function newRecords() {
  return createRecordMemory().readListing();
}

function startStream(steps: StepQueue, options: Partial<StreamOptions> = {}) {
  return createListingStream({
    kind: 'prompt',
    previous: undefined,
    allowDifference: options.previous !== undefined,
    scrub,
    startScan,
    steps,
    rank: 0,
    records: newRecords(),
    ...options,
  });
}

/** Creates a queue that takes no step before it is released. */
function heldQueue() {
  const queue = createStepQueue(Infinity);
  const held = Promise.withResolvers<void>();
  const run: StepQueue['run'] = async (...args) => {
    await held.promise;
    return await queue.run(...args);
  };
  return { run, release: held.resolve };
}

it('a listing stream holds back its body while more than 512 KiB wait to be parsed', async () => {
  const queue = heldQueue();
  const stream = startStream(queue);
  let read = 0;
  let room: Promise<void> | undefined;
  for (; room === undefined; read += PIECE) room = stream.push(body.subarray(read, read + PIECE));
  // Two stretches wait and a third one is being filled.
  expect(read).toBeGreaterThan(2 * 256 * 1024);
  expect(read).toBeLessThan(4 * 256 * 1024);
  queue.release();
  await room;
  for (; read < body.length; read += PIECE) await stream.push(body.subarray(read, read + PIECE));
  const answer = await stream.finish(undefined, signal);
  expect(answer).toMatchObject({ unchanged: false, size: 3000 });
});

it('a cancelled listing stream parses no more and does not block another one on the same queue', async () => {
  const queue = createStepQueue(1);
  const records = newRecords();
  const cancelled = startStream(queue, { records });
  // Waits until one stretch has been parsed; another one is left.
  await cancelled.push(body.subarray(0, 10 * PIECE));
  cancelled.cancel();
  const parsedBytes = records.bytes();
  const stream = startStream(queue);
  for (let at = 0; at < body.length; at += PIECE) await stream.push(body.subarray(at, at + PIECE));
  expect(await stream.finish(undefined, signal)).toMatchObject({ size: 3000 });
  expect(records.bytes()).toBe(parsedBytes);
});

it('a listing stream returns the right vanished id when items are parsed in several steps', async () => {
  // A full stretch of items of this length is a little longer than what one step parses.
  const text = (index: number) => {
    const start = `{"id":"p${index}","status":"RUNNING","name":"`;
    return `${start}${'n'.repeat(127 - start.length - 2)}"}`;
  };
  const indexes = Array.from({ length: 10_000 }, (_, index) => index);
  const listing = (without: number) =>
    Buffer.from(
      `[${indexes
        .filter((index) => index !== without)
        .map(text)
        .join()}]`,
    );
  const read = async (whole: Buffer, previous?: ListingBasis) => {
    const stream = startStream(createStepQueue(256 * 1024), { previous });
    for (let at = 0; at < whole.length; at += PIECE) {
      await stream.push(whole.subarray(at, at + PIECE));
    }
    const answer = await stream.finish(undefined, signal);
    if (answer?.unchanged !== false) throw new Error('it changed');
    return answer;
  };
  const { basis } = await read(listing(-1));
  for (const without of [100, 2063, 2064, 2065, 5000, 9999]) {
    expect((await read(listing(without), basis)).vanished).toEqual([`p${without}`]);
  }
});

it('a listing stream fails with the error of the whole body rather than that of an item', async () => {
  const stream = startStream(createStepQueue(Infinity), { startScan: createItemScanner(3) });
  await stream.push(Buffer.from(`[01,"${'x'.repeat(300_000)}",2,${' '.repeat(64)}`));
  expect(() => stream.push(Buffer.from('3,4'.padEnd(64)))).toThrow('max_items');

  const other = startStream(createStepQueue(Infinity));
  await other.push(Buffer.from(`[01,"${'x'.repeat(300_000)}",2]`));
  await expect(other.finish(undefined, signal)).rejects.toThrow('the body is not JSON');
});

it('an aborted listing stream rejects without waiting for parsing', async () => {
  const whole = Buffer.from('[{"id":"p","status":"FAILED"}]');
  const held = startStream(heldQueue());
  void held.push(whole);
  const ending = new AbortController();
  const finished = held.finish(undefined, ending.signal);
  ending.abort(new Error('the end'));
  await expect(finished).rejects.toThrow('the end');
});
