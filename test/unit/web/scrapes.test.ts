import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { Hono } from 'hono';
import { expect, it } from 'vitest';
import { createScrapes } from '../../../src/web/scrapes.ts';

const MIB = 1024 * 1024;

/** Sets up scrapes of an exposition of this size, each rendering of which has another letter. */
function setUp(bytes: number) {
  let renderings = 0;
  const render = async () => {
    renderings += 1;
    const letter = String.fromCodePoint(64 + renderings);
    return [Buffer.alloc(bytes - 1, letter), Buffer.from(letter)];
  };
  const app = new Hono().get('/', createScrapes(render, 'text/plain'));
  const scrape = async (accepted = 'identity') => {
    const { headers, body } = await app.request('/', { headers: { 'accept-encoding': accepted } });
    if (body === null) throw new Error('no body');
    return { length: Number(headers.get('content-length')), body };
  };
  return { scrape, count: () => renderings };
}

it('scrapes at the same time share one rendering in every encoding, and the next scrape renders again', async () => {
  const { scrape, count } = setUp(10);
  await Promise.all([scrape(), scrape('gzip'), scrape()]);
  expect(count()).toBe(1);
  const { body } = await scrape();
  expect((await buffer(body)).toString()).toBe('B'.repeat(10));
});

it.each([2, 200 * 1024, 3 * MIB + 1])('an exposition of %i bytes is sent whole', async (bytes) => {
  const { scrape } = setUp(bytes);
  const zipped = await scrape('gzip');
  const plain = await scrape();
  const answers = [gunzipSync(await buffer(zipped.body)), await buffer(plain.body)];
  expect(answers.map((answer) => answer.toString())).toEqual([
    'A'.repeat(bytes),
    'B'.repeat(bytes),
  ]);
  expect(plain.length).toBe(bytes);
});

it('a plain answer that is not read to its end can be cancelled', async () => {
  const { scrape } = setUp(3 * MIB);
  const { body } = await scrape();
  const reader = body.getReader();
  expect((await reader.read()).value).toBeDefined();
  await reader.cancel();
  expect(await reader.read()).toEqual({ done: true, value: undefined });
});
