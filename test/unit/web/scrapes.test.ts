import { pieces } from '../../support/pieces.ts';
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { buffer, text } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import type { Encoding } from '../../../src/web/request/encoding.ts';
import { createScrapes } from '../../../src/web/scrapes.ts';

const MIB = 1024 * 1024;

/** Sets up scrapes of an exposition of this size, each rendering of which differs. */
function setUp(bytes: number) {
  let renderings = 0;
  const scrape = createScrapes(() => {
    renderings += 1;
    return pieces(String.fromCodePoint(64 + renderings).repeat(bytes));
  });
  /** Opens a scrape whose client reads nothing. */
  async function open(encoding: Encoding = 'identity') {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the only members that are used
    const response = Object.assign(new EventEmitter(), { destroyed: false }) as ServerResponse;
    const { body, length } = await scrape(response, encoding);
    return { body, length, leave: () => response.emit('close') };
  }
  const first = async ({ body }: { readonly body: ReadableStream<Uint8Array> }) => {
    const { value } = await body.getReader().read();
    return String.fromCodePoint(value?.[0] ?? 0);
  };
  return { open, first, count: () => renderings };
}

it('concurrent scrapes share one rendering, and the next scrape renders again', async () => {
  const { open, first } = setUp(10);
  const [a, b] = await Promise.all([open(), open()]);
  const c = await open();
  expect(await Promise.all([first(a), first(b), first(c)])).toEqual(['A', 'A', 'B']);
});

it('concurrent scrapes share a rendering only with the same encoding', async () => {
  const { open, count } = setUp(10);
  await Promise.all([open('gzip'), open('gzip'), open(), open('gzip'), open()]);
  expect(count()).toBe(2);
  await open('gzip');
  expect(count()).toBe(3);
});

it.each([10, 200 * 1024, MIB + 1])(
  'an exposition of %i bytes is compressed completely',
  async (bytes) => {
    const { open } = setUp(bytes);
    const { body, length } = await open('gzip');
    const compressed = await buffer(body);
    expect(length).toBe(compressed.length);
    expect(gunzipSync(compressed).toString()).toBe('A'.repeat(bytes));
  },
);

it('an uncompressed exposition of more than 1 MiB is sent completely', async () => {
  const { open } = setUp(MIB + 1);
  const { body, length } = await open();
  expect(length).toBe(MIB + 1);
  expect(await text(body)).toBe('A'.repeat(MIB + 1));
});

it('a scrape yields to the event loop while a fast client reads', async () => {
  let turns = 0;
  let isOver = false;
  const count = () => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  const scrape = createScrapes(async function* () {
    for (let n = 0; n < 32; n += 1) yield Buffer.alloc(64 * 1024);
  });
  const { body, length } = await scrape(undefined, 'identity');
  setImmediate(count);
  expect(await text(body)).toHaveLength(length);
  isOver = true;
  expect(turns).toBeGreaterThanOrEqual(32);
});

it('scrapes share the newest rendering while unread renderings hold more than 64 MiB', async () => {
  const { open, first, count } = setUp(20 * MIB);
  const slow = [await open(), await open(), await open(), await open()];
  expect(count()).toBe(4);
  expect(await first(await open())).toBe('D');
  for (const { leave } of slow) leave();
  expect(await first(await open())).toBe('E');
});
