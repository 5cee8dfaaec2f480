import { connect } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { faultSyntax, parseFaults } from '../../../src/simulator/faults/fault-text.ts';
import { KEY, PROMPTS, simulate, stillWorld } from './simulation.ts';
import { PATIENCE } from '../../support/evalwatch.ts';

const REQUEST = `GET ${PROMPTS} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${KEY}\r\n\r\n`;
const MIB = 1024 * 1024;

function withFaults(text: string) {
  return simulate({ faults: parseFaults(text) });
}

function open(url: string) {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.on('error', () => socket.destroy());
  socket.write(REQUEST);
  return socket;
}

/** Returns the raw response up to the end of the connection, or as soon as it matches `enough`. */
async function raw(url: string, enough?: RegExp): Promise<string> {
  const socket = open(url);
  let received = '';
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString('latin1');
    if (enough?.test(received)) socket.destroy();
  });
  await new Promise((resolve) => socket.once('close', resolve));
  return received;
}

it.each<[string, number, object, RegExp]>([
  ['status=500', 500, {}, /^\{"detail":"Internal Server Error"\}$/],
  ['status=418', 418, {}, /^\{"detail":"I'm a Teapot"\}$/],
  ['status=204', 204, {}, /^$/],
  ['status=304', 304, {}, /^$/],
  ['status=206', 206, {}, /^\[\{"id"/],
  ['status=422', 422, {}, /^\{"detail":\[\{"loc":\["path","projectid"\]/],
  ['status=429/17', 429, { 'retry-after': '17' }, /detail/],
  ['redirect=http://127.0.0.1:9/steal', 307, { location: 'http://127.0.0.1:9/steal' }, /^/],
  ['content-type=text/plain', 200, { 'content-type': 'text/plain' }, /^\[\{"id".*\}\]$/],
  ['drip=20000', 200, {}, /^\[\{"id".*\}\]$/],
  ['drip-headers=20000', 200, {}, /^\[\{"id".*\}\]$/],
  ['garbage=html', 200, {}, /<!doctype html>/],
  ['garbage=nesting', 200, {}, /\[{65}/],
  ['garbage=object', 200, {}, /^\{"items":/],
  ['garbage=null', 200, {}, /^null$/],
  ['garbage=empty', 200, {}, /^$/],
  ['garbage=twice', 200, {}, /^\[.*\]\[.*\]$/],
  ['oversize=3MiB', 200, { 'content-length': String(3 * MIB) }, /^.{3145728}$/s],
  ['oversize-chunked=3MiB', 200, { 'transfer-encoding': 'chunked' }, /^.{3145728}$/s],
  ['items=prototype-keys', 200, {}, /"__proto__":\{"id":"polluted"/],
  ['items=odd-fields', 200, {}, /"name":7/],
  ['echo=header', 200, { 'x-received-key': KEY }, /^/],
  ['echo=error', 500, {}, new RegExp(KEY)],
  ['echo=validation', 422, {}, new RegExp(KEY)],
  ['echo=redirect', 307, { location: expect.stringContaining(KEY) }, /^/],
  ['echo=item', 200, {}, new RegExp(KEY)],
])('the fault %s answers %i', async (text, status, headers, body) => {
  const { get } = await withFaults(text);
  const answer = await get(PROMPTS);
  expect(answer.status).toBe(status);
  expect(answer.headers).toMatchObject(headers);
  expect(answer.body.toString()).toMatch(body);
});

it('the fault garbage=utf8 sends bytes that are not UTF-8', async () => {
  const { get } = await withFaults('garbage=utf8');
  const { body } = await get(PROMPTS);
  expect(() => new TextDecoder('utf-8', { fatal: true }).decode(body)).toThrow('not valid');
});

it('the faults gzip, broken and bomb send compressed bodies', async () => {
  const { faults, get } = await withFaults('gzip');
  const bodies = [];
  for (const text of ['gzip', 'broken', 'bomb=40MiB']) {
    faults.set(parseFaults(text));
    const { headers, body } = await get(PROMPTS);
    expect(headers['content-encoding']).toBe('gzip');
    bodies.push(body);
  }
  const [good = Buffer.of(), broken = Buffer.of(), bomb = Buffer.of()] = bodies;
  expect(JSON.parse(gunzipSync(good).toString())).toHaveLength(5);
  expect(() => gunzipSync(broken)).toThrow('unexpected end');
  expect(bomb.length).toBeLessThan(100_000);
  expect(gunzipSync(bomb).length).toBeGreaterThanOrEqual(40 * MIB);
});

it.each<[string, RegExp]>([
  ['reset=before', /^$/],
  ['reset=headers', /^(HTTP\/1\.1 .*)?$/s],
  ['reset=body', /^HTTP\/1\.1 .*\r\n\r\n\[/s],
  ['truncate', /^HTTP\/1\.1 .*\r\n\r\n\[/s],
  ['truncate=0', /\r\n\r\n$/],
  ['truncate=10', /content-length: \d{4}.*\r\n\r\n.{10}$/s],
  ['truncate-chunked=10', /\r\n\r\na\r\n.{10}\r\n$/s],
])('the fault %s breaks the connection', async (text, bytes) => {
  const { url, get } = await withFaults(text);
  expect(await raw(url)).toMatch(bytes);
  await expect(get(PROMPTS)).rejects.toMatchObject({
    code: expect.stringMatching(/^(ECONNRESET|UND_ERR_SOCKET)$/),
  });
});

it.each([
  ['drip-headers=60', /^HTTP\/1\.1 /],
  ['drip=60', /(?<=\r\n\r\n)\[/],
])('the fault %s sends small pieces', async (text, start) => {
  const { url } = await withFaults(text);
  const received = await raw(url, start);
  expect(received).toMatch(start);
  expect(received.slice(received.search(start)).length).toBeLessThan(100);
});

it('the fault delay answers with the state at the time of the request', async () => {
  const { world, requests, getJson } = await withFaults('delay=500ms');
  const id = world.addPrompt('checkout-bot', { status: 'RUNNING' });
  const pending = getJson(PROMPTS);
  await expect.poll(() => requests.inFlight, PATIENCE).toBe(1);
  world.setStatus('checkout-bot', id, 'COMPLETED');
  expect(await pending).toContainEqual(expect.objectContaining({ id, status: 'RUNNING' }));
});

it('the fault hang sends no response until the client disconnects', async () => {
  const { url, requests } = await withFaults('hang');
  const socket = open(url);
  await expect.poll(() => requests.inFlight, PATIENCE).toBe(1);
  socket.destroy();
  await expect.poll(() => requests.inFlight, PATIENCE).toBe(0);
  expect(requests.last?.status).toBeUndefined();
});

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
  ['not-an-object', [undefined, undefined], [undefined, undefined]],
  ['none-usable', [undefined, 'RUNNING']],
])('the fault items=%s sends a damaged listing', async (variant, ...expected) => {
  const world = stillWorld({ promptsPerProject: 0 });
  world.addPrompt('checkout-bot', { id: 'first' });
  const { getJson } = await simulate({ world, faults: parseFaults(`items=${variant}`) });
  const items = (await getJson(PROMPTS)) as ({ id?: unknown; status?: unknown } | null)[];
  expect(items.map((item) => [item?.id, item?.status])).toEqual(expected);
});

describe('a fault rule', () => {
  const fault = { kind: 'status', code: 500 } as const;

  it('applies only to the project and endpoint that it names, as often as its count', async () => {
    const { world, faults, get } = await simulate();
    faults.add({ fault, project: 'checkout-bot', endpoint: 'get_prompt', count: 2 });
    const own = `/v2/prompts/${world.addPrompt('checkout-bot')}/`;
    const others = [PROMPTS, `/v2/prompts/${world.addPrompt('search-ranking')}/`];
    const statuses = [];
    for (const path of [...others, own, own, own]) statuses.push((await get(path)).status);
    expect(statuses).toEqual([200, 200, 500, 500, 200]);
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
    const { faults, get } = await withFaults(
      'gzip,broken,items=unknown-status,status=500,delay=1ms',
    );
    const answer = await get(PROMPTS);
    expect(answer.headers['content-encoding']).toBe('gzip');
    expect(gunzipSync(answer.body).toString()).toContain('PAUSED');
    faults.clear();
    expect((await get(PROMPTS)).headers).not.toHaveProperty('content-encoding');
  });
});

describe('the text of faults', () => {
  it('is a list of kinds with an argument and a probability', () => {
    expect(parseFaults('')).toEqual([]);
    expect(parseFaults(' hang:0.1 , delay=1.5m,redirect=http://[::1]:80/x:.5 ')).toEqual([
      { fault: { kind: 'hang' }, probability: 0.1 },
      { fault: { kind: 'delay', ms: 90_000 }, probability: 1 },
      { fault: { kind: 'redirect', to: 'http://[::1]:80/x' }, probability: 0.5 },
    ]);
  });

  it('can be "all", a mixture that lets most requests succeed', () => {
    const rules = parseFaults('all,delay=5s:0.1');
    const harmless = new Set(['delay', 'compression', 'content-type', 'drip']);
    const harmful = rules.filter(({ fault }) => !harmless.has(fault.kind));
    expect(rules.at(-1)).toEqual({ fault: { kind: 'delay', ms: 5000 }, probability: 0.1 });
    expect(new Set(rules.map(({ fault }) => fault.kind)).size).toBe(14);
    expect(harmful.reduce((sum, rule) => sum + (rule.probability ?? 1), 0)).toBeLessThan(0.3);
  });

  it.each([
    ['statsu=500', /^Fault "statsu=500": expected kind.*status, delay, hang.*, all\.$/],
    ['gzip:2', /^Fault "gzip:2": expected kind.*probability from 0 to 1/],
    ['__proto__', /^Fault "__proto__": expected kind/],
    ['status', /^Fault "status": expected status=CODE\[\/RETRY_AFTER\]\[:probability\]\.$/],
    ['delay=900h', /expected delay=DURATION/],
    ['reset=later', /expected reset\[=before\|headers\|body\]/],
    ['hang=1', /expected hang\[:probability\]/],
    ['drip=0', /expected drip=BYTES_PER_SECOND/],
    ['items=toString', /expected items=no-id\|/],
    ['redirect=http://x/\r\nSet-Cookie', /expected redirect\[=URL\]/],
  ])('%j is rejected with an error that shows the correct syntax', (text, message) => {
    expect(() => parseFaults(text)).toThrow(message);
  });

  it('is described with required and optional arguments', () => {
    const syntax = faultSyntax();
    for (const part of ['status=CODE[/RETRY_AFTER]', 'hang', 'truncate[=BYTES]', 'all']) {
      expect(syntax).toContain(part);
    }
  });
});
