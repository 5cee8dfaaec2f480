import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { connect, failureOf, listOptions, RUNNING, serve } from './harness.ts';

describe('a body that arrives byte by byte', () => {
  /** Requests a detail with a message of this length. */
  async function read(length: number, coding: string) {
    const body = Buffer.from(JSON.stringify({ error_info: { error_msg: 'x'.repeat(length) } }));
    const { url } = await serve((_, response) => {
      response.writeHead(200, { 'content-encoding': coding });
      response.flushHeaders();
      response.socket?.cork();
      // At level 0 the compressed body has as many bytes.
      for (const byte of coding === 'gzip' ? gzipSync(body, { level: 0 }) : body) {
        response.write(Buffer.of(byte));
      }
      response.socket?.uncork();
      response.end();
    });
    return connect({ baseUrl: url, timeoutMs: 60_000 }).service.getErrorInfo('p', 'id', RUNNING);
  }

  it.each(['identity', 'gzip'])('is read, with content encoding %s', async (coding) => {
    const info = await read(8000, coding);
    expect(info?.errorInfo.error_msg).toBe('x'.repeat(8000));
  });

  it.each(['identity', 'gzip'])(
    'is refused after 10,000 bytes, with content encoding %s',
    async (coding) => {
      const { reason, message } = await failureOf(read(20_000, coding));
      expect([reason, message]).toEqual([
        'invalid_response',
        'the body has more than 10000 chunks, of fewer than 16 bytes on average',
      ]);
    },
  );
});

describe('a large listing', () => {
  const item = (index: number) => ({ id: `p${index}`, status: 'RUNNING', name: 'n'.repeat(400) });
  const listing = (first: number) =>
    Buffer.from(JSON.stringify(Array.from({ length: 10_000 }, (_, n) => item(first + n))));
  const bodies = [listing(0), listing(1), listing(2)];

  it.each(['identity', 'gzip'])(
    'is complete on each request over a reused connection, with content encoding %s',
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
        previous = answer.table;
        expect([...answer.listing.records.keys()].at(-1)).toBe(`p${9_999 + index}`);
        expect(answer.vanished).toEqual(index === 0 ? undefined : [`p${index - 1}`]);
      }
      expect(sockets.size).toBeLessThan(bodies.length);
    },
  );

  it('increases the memory of array buffers by less than its own size', async () => {
    const body = Buffer.concat([
      Buffer.from('['),
      ...bodies.flatMap((some) => [some.subarray(1, -1), Buffer.from(',')]),
      Buffer.from('{}]'),
    ]);
    const { url } = await serve((_, response) => response.end(body));
    const { service } = connect({
      baseUrl: url,
      maxResponseBytes: 64 * 1024 * 1024,
      timeoutMs: 60_000,
    });
    const before = process.memoryUsage().arrayBuffers;
    await service.list('p', 'prompt', listOptions());
    expect(body.length).toBeGreaterThan(12e6);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(body.length);
  });
});
