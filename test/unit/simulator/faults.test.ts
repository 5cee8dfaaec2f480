import { connect } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { parseFaults } from '../../../src/simulator/faults/fault-text.ts';
import { KEY, PROMPTS, simulate, stillWorld } from './simulation.ts';
import { PATIENCE } from '../../support/evalwatch.ts';

function withFaults(text: string) {
  return simulate({ faults: parseFaults(text) });
}

/** Returns the raw response up to the end of the connection, or as soon as it matches `enough`. */
async function raw(url: string, enough?: RegExp): Promise<string> {
  const { port } = new URL(url);
  const socket = connect(Number(port), '127.0.0.1');
  let received = '';
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString('latin1');
    if (enough?.test(received)) socket.destroy();
  });
  socket.on('error', () => socket.destroy());
  socket.write(`GET ${PROMPTS} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${KEY}\r\n\r\n`);
  await new Promise((resolve) => socket.once('close', resolve));
  return received;
}

describe('A status fault', () => {
  it.each([
    ['status=500', 500, '{"detail":"Internal Server Error"}'],
    ['status=418', 418, `{"detail":"I'm a Teapot"}`],
    ['status=204', 204, ''],
    ['status=304', 304, ''],
    ['status=302', 302, ''],
  ])('of %s answers with that status and the default body', async (text, status, body) => {
    const { get } = await withFaults(text);

    const answer = await get(PROMPTS);

    expect(answer.status).toBe(status);
    expect(answer.body.toString()).toBe(body);
  });

  it('of 422 answers with a validation body', async () => {
    const { getJson } = await withFaults('status=422');

    expect(await getJson(PROMPTS)).toEqual({
      detail: [{ loc: ['path', 'projectid'], msg: expect.any(String), type: expect.any(String) }],
    });
  });

  it('of 206 keeps the body of the listing', async () => {
    const { get } = await withFaults('status=206');

    const answer = await get(PROMPTS);

    expect(answer.status).toBe(206);
    expect(JSON.parse(answer.body.toString())).toHaveLength(5);
  });

  it('can set Retry-After or a custom body', async () => {
    const { faults, get } = await withFaults('status=429/17');
    expect((await get(PROMPTS)).headers['retry-after']).toBe('17');

    faults.set([{ fault: { kind: 'status', code: 400, body: 'no' } }]);
    expect((await get(PROMPTS)).body.toString()).toBe('no');
  });
});

describe('A connection fault', () => {
  it.each(['reset=before', 'reset=headers', 'reset=body', 'truncate', 'truncate=0'])(
    'of %s causes a connection error in the client',
    async (text) => {
      const { get } = await withFaults(text);

      await expect(get(PROMPTS)).rejects.toMatchObject({
        code: expect.stringMatching(/^(ECONNRESET|UND_ERR_SOCKET)$/),
      });
    },
  );

  it('of reset=before sends no bytes', async () => {
    const { url } = await withFaults('reset=before');

    expect(await raw(url)).toBe('');
  });

  it('of truncate=10 ends a body with a Content-Length after 10 bytes', async () => {
    const { url } = await withFaults('truncate=10');

    const [head = '', body = ''] = (await raw(url)).split('\r\n\r\n');

    expect(head).toMatch(/content-length: \d{4}/);
    expect(body).toHaveLength(10);
  });

  it('of truncate=100000 withholds the last byte of a shorter body', async () => {
    const { url } = await withFaults('truncate=100000');

    const [head = '', body = ''] = (await raw(url)).split('\r\n\r\n');

    expect(head).toContain(`content-length: ${body.length + 1}`);
  });

  it('of truncate-chunked=10 ends a chunked body without its last chunk', async () => {
    const { url } = await withFaults('truncate-chunked=10');

    const received = await raw(url);

    expect(received).toMatch(/transfer-encoding: chunked/i);
    expect(received).toMatch(/\r\n\r\na\r\n.{10}\r\n$/s);
  });
});

describe('A slowness fault', () => {
  it('of delay=500ms answers with the state at the time of the request', async () => {
    const { world, requests, getJson } = await withFaults('delay=500ms');
    const id = world.addPrompt('checkout-bot', { status: 'RUNNING' });

    const pending = getJson(PROMPTS);
    await expect.poll(() => requests.inFlight, PATIENCE).toBe(1);
    world.setStatus('checkout-bot', id, 'COMPLETED');

    expect(await pending).toContainEqual(expect.objectContaining({ id, status: 'RUNNING' }));
  });

  it('of hang sends no response until the client disconnects', async () => {
    const { url, requests } = await withFaults('hang');
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.write(`GET ${PROMPTS} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${KEY}\r\n\r\n`);
    await expect.poll(() => requests.inFlight, PATIENCE).toBe(1);

    socket.destroy();

    await expect.poll(() => requests.inFlight, PATIENCE).toBe(0);
    expect(requests.last?.status).toBeUndefined();
  });

  it.each(['drip=20000', 'drip-headers=20000'])(
    'of %s still sends the complete body',
    async (text) => {
      const { get } = await withFaults(text);

      const answer = await get(PROMPTS);

      expect(JSON.parse(answer.body.toString())).toHaveLength(5);
    },
  );

  it.each([
    ['drip-headers=60', 'headers', /^HTTP\/1\.1 /],
    ['drip=60', 'body', /(?<=\r\n\r\n)\[/],
  ])('of %s sends the %s in small pieces', async (text, _, start) => {
    const { url } = await withFaults(text);

    const received = await raw(url, start);

    expect(received).toMatch(start);
    expect(received.slice(received.search(start)).length).toBeLessThan(100);
  });
});

describe('A body fault', () => {
  it.each([
    ['text', (body: Buffer) => expect(() => JSON.parse(body.toString())).toThrow('JSON')],
    ['html', (body: Buffer) => expect(body.toString()).toContain('<!doctype html>')],
    ['utf8', (body: Buffer) => expect(() => decodeStrictly(body)).toThrow('not valid')],
    ['nesting', (body: Buffer) => expect(body.toString()).toContain('['.repeat(65))],
    ['object', (body: Buffer) => expect(JSON.parse(body.toString())).toHaveProperty('items')],
    ['null', (body: Buffer) => expect(JSON.parse(body.toString())).toBeNull()],
    ['empty', (body: Buffer) => expect(body).toHaveLength(0)],
    ['twice', (body: Buffer) => expect(() => JSON.parse(body.toString())).toThrow('JSON')],
  ])('of garbage=%s answers 200 with a body that is not a listing', async (variant, check) => {
    const { get } = await withFaults(`garbage=${variant}`);

    const answer = await get(PROMPTS);

    expect(answer.status).toBe(200);
    check(answer.body);
  });

  it.each([
    ['oversize=3MiB', String(3 * 1024 * 1024)],
    ['oversize-chunked=3MiB', undefined],
  ])('of %s sends a body of that size', async (text, contentLength) => {
    const { get } = await withFaults(text);

    const answer = await get(PROMPTS);

    expect(answer.headers['content-length']).toBe(contentLength);
    expect(answer.body).toHaveLength(3 * 1024 * 1024);
  });

  it('of bomb=40MiB sends less than 100 kB of gzip that decompress to at least 40 MiB', async () => {
    const { get } = await withFaults('bomb=40MiB');

    const answer = await get(PROMPTS);

    expect(answer.headers['content-encoding']).toBe('gzip');
    expect(answer.body.length).toBeLessThan(100_000);
    expect(gunzipSync(answer.body).length).toBeGreaterThanOrEqual(40 * 1024 * 1024);
  });
});

describe('A compression fault', () => {
  it('compresses the body without Accept-Encoding; a broken one cannot be decompressed', async () => {
    const { faults, get } = await withFaults('gzip');
    const good = await get(PROMPTS);

    faults.set(parseFaults('broken'));
    const broken = await get(PROMPTS);

    expect([good, broken].map((answer) => answer.headers['content-encoding'])).toEqual([
      'gzip',
      'gzip',
    ]);
    expect(JSON.parse(gunzipSync(good.body).toString())).toHaveLength(5);
    expect(() => gunzipSync(broken.body)).toThrow('unexpected end');
  });
});

describe('An items fault', () => {
  it.each([
    ['no-id', [undefined, 'PENDING']],
    ['numeric-id', [42, 'PENDING']],
    ['empty-id', ['', 'PENDING']],
    ['long-id', ['x'.repeat(513), 'PENDING']],
    ['surrogate-id', ['half \ud83d', 'PENDING']],
    ['no-status', ['first', undefined]],
    ['null-status', ['first', null]],
    ['numeric-status', ['first', 3]],
    ['unknown-status', ['first', 'PAUSED']],
    ['duplicate', ['first', 'RUNNING'], ['first', 'PENDING']],
    ['prototype-keys', ['first', 'PENDING']],
    ['odd-fields', ['first', 'PENDING']],
    ['not-an-object', [undefined, undefined], [undefined, undefined]],
    ['none-usable', [undefined, 'RUNNING']],
  ])('sends a damaged listing: %s', async (variant, ...expected) => {
    const world = stillWorld({ promptsPerProject: 0 });
    world.addPrompt('checkout-bot', { id: 'first' });
    const { getJson } = await simulate({ world, faults: parseFaults(`items=${variant}`) });

    const items = (await getJson(PROMPTS)) as ({ id?: unknown; status?: unknown } | null)[];

    expect(items.map((item) => [item?.id, item?.status])).toEqual(expected);
  });

  it('of prototype-keys sends an item with a __proto__ field', async () => {
    const { get } = await withFaults('items=prototype-keys');

    expect((await get(PROMPTS)).body.toString()).toContain('"__proto__":{"id":"polluted"');
  });

  it('of odd-fields sends an item with fields of other types', async () => {
    const { getJson } = await withFaults('items=odd-fields');

    expect(await getJson(PROMPTS)).toMatchObject([
      { name: 7, timestamp: null, owner: { team: ['x'] } },
      ...Array.from({ length: 4 }, () => ({ name: expect.any(String) as unknown })),
    ]);
  });

  it('leaves an empty listing unchanged', async () => {
    const world = stillWorld({ promptsPerProject: 0 });
    const { getJson } = await simulate({ world, faults: parseFaults('items=no-id') });

    expect(await getJson(PROMPTS)).toEqual([]);
  });
});

describe('An echo fault', () => {
  it.each([
    ['header', 200],
    ['error', 500],
    ['validation', 422],
    ['redirect', 307],
    ['item', 200],
  ])('of echo=%s returns the API key of the request', async (where, status) => {
    const { get } = await withFaults(`echo=${where}`);

    const answer = await get(PROMPTS);

    expect(answer.status).toBe(status);
    expect(JSON.stringify(answer.headers) + answer.body.toString()).toContain(KEY);
  });

  it('of echo=item returns the API key in the error_info of a prompt', async () => {
    const { world, getJson } = await withFaults('echo=item');

    const prompt = await getJson(`/v2/prompts/${world.addPrompt('checkout-bot')}/`);

    expect(prompt).toHaveProperty('error_info.error_msg', expect.stringContaining(KEY));
  });
});

it('A redirect fault answers 307 with the given location', async () => {
  const { get } = await withFaults('redirect=http://127.0.0.1:9/steal');

  const answer = await get(PROMPTS);

  expect(answer.status).toBe(307);
  expect(answer.headers['location']).toBe('http://127.0.0.1:9/steal');
});

it('A content-type fault changes the Content-Type header and leaves the body intact', async () => {
  const { get } = await withFaults('content-type=text/plain');

  const answer = await get(PROMPTS);

  expect(answer.headers['content-type']).toBe('text/plain');
  expect(JSON.parse(answer.body.toString())).toHaveLength(5);
});

describe('A fault rule', () => {
  const fault = { kind: 'status', code: 500 } as const;

  it('applies only to the project and endpoint that it names', async () => {
    const { world, faults, get } = await simulate();
    faults.add({ fault, project: 'checkout-bot', endpoint: 'get_prompt' });
    const paths = [
      PROMPTS,
      `/v2/prompts/${world.addPrompt('checkout-bot')}/`,
      `/v2/prompts/${world.addPrompt('search-ranking')}/`,
    ];

    const statuses = [];
    for (const path of paths) statuses.push((await get(path)).status);

    expect(statuses).toEqual([200, 500, 200]);
  });

  it('applies to as many requests as its count', async () => {
    const { faults, get } = await simulate();
    faults.add({ fault, count: 2 });

    const statuses = [];
    for (let n = 0; n < 4; n += 1) statuses.push((await get(PROMPTS)).status);

    expect(statuses).toEqual([500, 500, 200, 200]);
  });

  it('applies at random, and to the same requests with the same seed', async () => {
    const runs = [];
    for (const faultSeed of [5, 5, 6]) {
      const { get } = await simulate({ faultSeed, faults: [{ fault, probability: 0.5 }] });
      const statuses = [];
      for (let n = 0; n < 30; n += 1) statuses.push((await get(PROMPTS)).status);
      runs.push(statuses);
    }

    expect(new Set(runs[0])).toEqual(new Set([200, 500]));
    expect(runs[1]).toEqual(runs[0]);
    expect(runs[2]).not.toEqual(runs[0]);
  });

  it('is combined with rules of other stages; of each stage only the first applies', async () => {
    const { get } = await withFaults('gzip,broken,items=unknown-status,status=500,delay=1ms');

    const answer = await get(PROMPTS);

    expect(answer.headers['content-encoding']).toBe('gzip');
    expect(gunzipSync(answer.body).toString()).toContain('PAUSED');
  });

  it('no longer applies after clear()', async () => {
    const { faults, get } = await withFaults('status=500');

    faults.clear();

    expect((await get(PROMPTS)).status).toBe(200);
  });
});

function decodeStrictly(body: Buffer): string {
  return new TextDecoder('utf-8', { fatal: true }).decode(body);
}
