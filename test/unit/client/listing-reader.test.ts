import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { ListingReader, type ReaderOptions } from '../../../src/client/listing/listing.ts';
import { RecordMemory } from '../../../src/client/record-memory.ts';
import { ItemScanner } from '../../../src/client/listing/scanner.ts';

const PIECE = 64 * 1024;
const scrub = (text: string) => text;
const scanner = new ItemScanner(1_000_000);
const { signal } = new AbortController();

function startReader(options: Partial<ReaderOptions> = {}): ListingReader {
  return new ListingReader({
    kind: 'prompt',
    previous: undefined,
    allowDifference: true,
    scrub,
    scanner,
    memory: new RecordMemory().readListing(false),
    ...options,
  });
}

const [A, B, C] = ['a', 'b', 'c'].map((id) => `{"id":"${id}","status":"RUNNING"}`);

async function read(body: Buffer, options?: Partial<ReaderOptions>) {
  const reader = startReader(options);
  for (let at = 0; at < body.length; at += PIECE) await reader.push(body.subarray(at, at + PIECE));
  const answer = await reader.finish(undefined, signal);
  if (answer.unchanged) throw new Error('it is unchanged');
  return answer;
}

it('a listing is not read on while 256 KiB of new items wait to be parsed', async () => {
  const items = Array.from({ length: 3000 }, (_, index) => ({
    id: `p${index}`,
    status: 'RUNNING',
    name: 'n'.repeat(1000),
  }));
  const body = Buffer.from(JSON.stringify(items));
  const reader = startReader();
  let at = 0;
  let pause: Promise<void> | undefined;
  for (; pause === undefined && at < body.length; at += PIECE)
    pause = reader.push(body.subarray(at, at + PIECE));
  expect(at).toBeGreaterThan(256 * 1024);
  expect(at).toBeLessThan(2 * 256 * 1024);
  await pause;
  for (; at < body.length; at += PIECE) await reader.push(body.subarray(at, at + PIECE));
  expect(await reader.finish(undefined, signal)).toMatchObject({ unchanged: false, size: 3000 });
});

it('a listing gives way to other work after 512 KiB, even if all of it is known', async () => {
  const items = Array.from(
    { length: 20_000 },
    (_, index) => `{"id":"p${index}","status":"RUNNING"}`,
  );
  const body = Buffer.from(`[${items.join()}]`);
  const { table } = await read(body);
  const reader = startReader({ previous: table });
  let at = 0;
  let pause: Promise<void> | undefined;
  for (; pause === undefined && at < body.length; at += PIECE)
    pause = reader.push(body.subarray(at, at + PIECE));
  expect(at).toBe(512 * 1024);
});

it('two listings are not parsed in one turn of the event loop', async () => {
  const body = Buffer.from('[{"id":"p","status":"RUNNING"}]');
  const ended: string[] = [];
  const finish = async (name: string) => {
    await read(body);
    ended.push(name);
  };
  const both = Promise.all([finish('one'), finish('other')]);
  while (ended.length === 0) await setImmediate();
  expect(ended).toEqual(['one']);
  await both;
});

it('an unusual item that the next listing lacks has vanished, too', async () => {
  const { table } = await read(Buffer.from(`[${A},{"id":"odd","status":"PAUSED"}]`));
  expect(await read(Buffer.from(`[${A}]`), { previous: table })).toMatchObject({
    vanished: ['odd'],
    size: 1,
  });
});

it('a listing has the right vanished id when its items are parsed in several turns', async () => {
  // A full stretch of items of this length is a little longer than what one turn parses.
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
  const { table } = await read(listing(-1));
  for (const without of [100, 2063, 2064, 2065, 5000, 9999]) {
    const answer = await read(listing(without), { previous: table });
    expect(answer.vanished).toEqual([`p${without}`]);
    expect(answer.size).toBe(9999);
  }
});

const FAILED = '{"id":"a","status":"FAILED"}';
const NO_STATUS = '{"id":"a"}';

it.each([
  ['as it was', [A, B, A, C], { a: 'RUNNING' }, [['duplicate_id', 2]]],
  ['first as it was and then otherwise', [A, B, FAILED, C], { a: 'FAILED' }, [['duplicate_id', 2]]],
  ['first otherwise and then as it was', [FAILED, B, A, C], {}, [['duplicate_id', 2]]],
  [
    'otherwise, as it was, and otherwise',
    [FAILED, A, FAILED, B, C],
    { a: 'FAILED' },
    [
      ['duplicate_id', 1],
      ['duplicate_id', 2],
    ],
  ],
  ['as it was and then without a status', [A, NO_STATUS, B, C], {}, [['invalid', 1]]],
  [
    'without a status and then as it was',
    [NO_STATUS, A, B, C],
    {},
    [
      ['invalid', 0],
      ['duplicate_id', 1],
    ],
  ],
])(
  'a listing that has an item twice, %s, is like one that is parsed',
  async (...[, items, records, anomalies]) => {
    const { table } = await read(Buffer.from(`[${[A, B, C].join()}]`));
    const body = Buffer.from(`[${items.join()}]`);
    const answer = await read(body, { previous: table });
    const statuses = [...answer.listing.records].map(([id, { status }]) => [id, status]);
    expect(Object.fromEntries(statuses)).toEqual(records);
    expect(answer).toMatchObject({ vanished: [], size: 3 });
    const told = answer.listing.anomalies.flatMap(({ reason, indexes }) =>
      indexes.map((index) => [reason, index]),
    );
    expect(told).toEqual(anomalies);
    expect(told).toEqual(
      (await read(body)).listing.anomalies.flatMap(({ reason, indexes }) =>
        indexes.map((index) => [reason, index]),
      ),
    );
    // Neither of the two is known in the next listing.
    const next = await read(Buffer.from(`[${[A, B].join()}]`), { previous: answer.table });
    expect([...next.listing.records.keys()]).toEqual(['a']);
    expect(next).toMatchObject({ vanished: ['c'], size: 2 });
  },
);

it('a listing fails with the error of the whole body rather than that of an item', async () => {
  const reader = startReader({ scanner: new ItemScanner(3) });
  await reader.push(Buffer.from(`[01,"${'x'.repeat(300_000)}",2,${' '.repeat(64)}`));
  expect(() => reader.push(Buffer.from('3,4'.padEnd(64)))).toThrow('max_items');

  const other = startReader();
  await other.push(Buffer.from(`[01,"${'x'.repeat(300_000)}",2]`));
  await expect(other.finish(undefined, signal)).rejects.toThrow('the body is not JSON');
});

it('a listing that is aborted while it is parsed rejects with the reason', async () => {
  const reader = startReader();
  void reader.push(Buffer.from('[{"id":"p","status":"FAILED"}]'));
  const ending = new AbortController();
  const finished = reader.finish(undefined, ending.signal);
  ending.abort(new Error('the end'));
  await expect(finished).rejects.toThrow('the end');
});
