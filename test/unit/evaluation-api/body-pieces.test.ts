import { gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  createPieceJoiner,
  createPieceReader,
  releasePieces,
} from '../../../src/evaluation-api/sending/body-pieces.ts';
import { createDispatcher } from '../../../src/evaluation-api/sending/dispatcher.ts';
import { exchange } from '../../../src/evaluation-api/sending/exchange.ts';
import { connect, listOptions, serve } from './harness.ts';

/** What a joiner passes on of these pieces. */
function join(pieces: readonly Buffer[]): readonly Buffer[] {
  const joined: Buffer[] = [];
  const joiner = createPieceJoiner((piece) => joined.push(piece));
  for (const piece of pieces) joiner.push(piece);
  joiner.flush();
  return joined;
}

describe('pieces of a body', () => {
  it('are read across their borders, in any order', () => {
    const read = createPieceReader(['abc', '', 'def', 'g'].map((text) => Buffer.from(text)));
    expect(read(1, 5).toString()).toBe('bcde');
    expect(read(6, 7).toString()).toBe('g');
    expect(read(0, 7).toString()).toBe('abcdefg');
  });

  it.each([1, 7, 1000, 10_000, 40_000])(
    'of %i bytes are the same bytes once they are joined',
    (size) => {
      const body = Buffer.from(Array.from({ length: 300_000 }, (_, n) => n % 251));
      const pieces = Array.from({ length: Math.ceil(body.length / size) }, (_, n) =>
        body.subarray(n * size, (n + 1) * size),
      );
      expect(Buffer.concat(join(pieces)).equals(body)).toBe(true);
    },
  );

  it('are joined where they are small, and no larger than a block', () => {
    const joined = join(Array.from({ length: 1_000_000 }, () => Buffer.of(7)));
    expect(joined.length).toBeLessThan(30);
    expect(Math.max(...joined.map(({ buffer }) => buffer.byteLength))).toBe(65_536);
  });

  it('stay in their order and as they are where they are large', () => {
    const [small, large] = [Buffer.from('small'), Buffer.alloc(40_000, 'large')];
    const joined = join([small, large, small, small]);
    expect(joined).toEqual([small, large, Buffer.from('smallsmall')]);
    expect(joined[1]).toBe(large);
  });

  it('give back their memory, also where several are parts of one', () => {
    const chunk = Buffer.from(new ArrayBuffer(65_536));
    releasePieces([chunk.subarray(0, 30_000), chunk.subarray(30_000)]);
    expect(chunk.buffer.byteLength).toBe(0);
  });

  it('leave alone what Node shares among small buffers', () => {
    const neighbour = Buffer.from('somebody else');
    const small = Buffer.allocUnsafe(100);
    expect(small.buffer).toBe(neighbour.buffer);
    const joined = join([small]);
    releasePieces(joined);
    expect(joined[0]?.buffer.byteLength).toBe(0);
    expect(neighbour.toString()).toBe('somebody else');
  });
});

describe('a body that comes byte by byte', () => {
  const body = Buffer.from(JSON.stringify('x'.repeat(100_000)));

  it.each(['identity', 'gzip'])('is kept in few pieces: %s', async (coding) => {
    const { url } = await serve((_, response) => {
      response.writeHead(200, { 'content-encoding': coding });
      response.flushHeaders();
      response.socket?.cork();
      // Compressed bodies then have as many bytes.
      for (const byte of coding === 'gzip' ? gzipSync(body, { level: 0 }) : body) {
        response.write(Buffer.of(byte));
      }
      response.socket?.uncork();
      response.end();
    });
    const dispatcher = createDispatcher({
      origin: url,
      timeoutMs: 60_000,
      authorities: undefined,
      proxyUrl: undefined,
    });
    onTestFinished(() => dispatcher.destroy());
    const { body: pieces, bytes } = await exchange(dispatcher, {
      origin: url,
      path: '/',
      headers: {},
      timeoutMs: 60_000,
      maxBytes: 1024 * 1024,
      scrub: (text) => text,
      onSent: () => {},
      signal: new AbortController().signal,
    });
    if (pieces instanceof Error) throw pieces;
    expect(Buffer.concat(pieces).equals(body)).toBe(true);
    expect(bytes).toBe(body.length);
    expect(pieces.length).toBeLessThan(20);
  });
});

describe('a large listing', () => {
  const item = (index: number) => ({ id: `p${index}`, status: 'RUNNING', name: 'n'.repeat(400) });
  const listing = (first: number) =>
    Buffer.from(JSON.stringify(Array.from({ length: 50_000 }, (_, n) => item(first + n))));
  const bodies = [listing(0), listing(1), listing(2)];

  it.each(['identity', 'gzip'])(
    'is whole each time, on a connection that was used before: %s',
    async (coding) => {
      const encoded = bodies.map((body) =>
        coding === 'gzip' ? gzipSync(body, { level: 1 }) : body,
      );
      let turn = 0;
      const { url, sockets } = await serve((_, response) => {
        response.writeHead(200, { 'content-encoding': coding });
        // Without a length it comes in chunks, some of them small.
        const body = encoded[turn] ?? Buffer.of();
        turn += 1;
        for (let at = 0; at < body.length; at += 5000 * turn)
          response.write(body.subarray(at, at + 5000 * turn));
        response.end();
      });
      const { service } = connect({
        baseUrl: url,
        maxResponseBytes: 64 * 1024 * 1024,
        timeoutMs: 60_000,
      });
      let previous;
      for (const [index] of bodies.entries()) {
        const answer = await service.list('p', 'prompt', listOptions({ previous }));
        if (answer.unchanged) throw new Error('it has changed');
        previous = answer.basis;
        expect([...answer.listing.records.keys()].at(-1)).toBe(`p${49_999 + index}`);
        expect(answer.vanished).toEqual(index === 0 ? undefined : [`p${index - 1}`]);
      }
      expect(sockets.size).toBeLessThan(bodies.length);
    },
  );

  it('leaves nothing for the collector to find', async () => {
    const [body = Buffer.of()] = bodies;
    const { url } = await serve((_, response) => response.end(body));
    const { service } = connect({
      baseUrl: url,
      maxResponseBytes: 64 * 1024 * 1024,
      timeoutMs: 60_000,
    });
    const before = process.memoryUsage().arrayBuffers;
    await service.list('p', 'prompt', listOptions());
    expect(body.length).toBeGreaterThan(20e6);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(body.length);
  });
});
