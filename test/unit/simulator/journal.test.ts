import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { parseFaults } from '../../../src/simulator/faults/fault-text.ts';
import { DATASETS, KEY, PROMPTS, simulate, stillWorld } from './simulation.ts';
import { PATIENCE } from '../../support/evalwatch.ts';

/** Starts a journaling simulation of the prompt `only`, in PENDING, and a dataset. */
function journaling(faults = '') {
  const world = stillWorld({ promptsPerProject: 0, datasetsPerProject: 0 });
  world.addPrompt('checkout-bot', { id: 'only' });
  world.addDataset('checkout-bot', { id: 'data' });
  return simulate({ world, journal: true, faults: parseFaults(faults) });
}

describe('The journal', () => {
  it('records each served listing with its items and times', async () => {
    const before = Date.now();
    const { world, journal, getJson } = await journaling();

    await getJson(PROMPTS);
    world.setStatus('checkout-bot', 'only', 'FAILED');
    await getJson(DATASETS);
    await getJson(PROMPTS);

    await expect.poll(() => journal, PATIENCE).toHaveLength(3);
    expect(journal).toMatchObject([
      { seq: 1, project: 'checkout-bot', kind: 'prompt', items: [['only', 'PENDING']] },
      { seq: 2, project: 'checkout-bot', kind: 'dataset', items: [['data', null]] },
      { seq: 3, unchanged: false, items: [['only', 'FAILED']] },
    ]);
    for (const { producedAt, finishedAt } of journal) {
      expect(producedAt).toBeGreaterThanOrEqual(before);
      expect(finishedAt).toBeGreaterThanOrEqual(producedAt);
    }
  });

  it('records a 304 with the items of the unchanged listing', async () => {
    const { journal, get } = await journaling();
    const tag = String((await get(PROMPTS)).headers['etag']);

    await get(PROMPTS, { 'if-none-match': tag });

    await expect.poll(() => journal, PATIENCE).toHaveLength(2);
    expect(journal[1]).toMatchObject({ unchanged: true, items: [['only', 'PENDING']] });
  });

  it.each(['truncate', 'reset=body'])(
    'omits a 304 that is broken by %s, and the client gets a connection error',
    async (text) => {
      const { faults, journal, get } = await journaling();
      const tag = String((await get(PROMPTS)).headers['etag']);
      faults.set(parseFaults(text));

      await expect(get(PROMPTS, { 'if-none-match': tag })).rejects.toMatchObject({
        code: expect.stringMatching(/^(ECONNRESET|UND_ERR_SOCKET)$/),
      });

      expect(journal).toHaveLength(1);
    },
  );

  it('records a false 304 with the items that were served last', async () => {
    const { world, faults, journal, get } = await journaling();
    const tag = String((await get(PROMPTS)).headers['etag']);
    world.setStatus('checkout-bot', 'only', 'RUNNING');
    faults.set(parseFaults('status=304'));

    await get(PROMPTS, { 'if-none-match': tag });

    await expect.poll(() => journal, PATIENCE).toHaveLength(2);
    expect(journal[1]).toMatchObject({ unchanged: true, items: [['only', 'PENDING']] });
  });

  it.each(['gzip', 'drip=50000', 'content-type', 'echo=header', 'status=200'])(
    'records a listing that arrives despite %s',
    async (text) => {
      const { journal, get } = await journaling(text);

      await get(PROMPTS);

      await expect.poll(() => journal, PATIENCE).toHaveLength(1);
      expect(journal[0]?.items).toEqual([['only', 'PENDING']]);
    },
  );

  it.each([
    ['items=unknown-status', [['only', 'PAUSED']]],
    ['items=no-id', [[null, 'PENDING']]],
    [
      'items=duplicate',
      [
        ['only', 'RUNNING'],
        ['only', 'PENDING'],
      ],
    ],
  ])('records for %s the items that were served, not the true ones', async (text, items) => {
    const { journal, get } = await journaling(text);

    await get(PROMPTS);

    await expect.poll(() => journal, PATIENCE).toHaveLength(1);
    expect(journal[0]?.items).toEqual(items);
  });

  it.each([
    'truncate',
    'truncate-chunked',
    'reset=before',
    'reset=body',
    'status=500',
    'status=206',
    'status=304',
    'redirect',
    'garbage',
    'oversize=1KiB',
    'broken',
    'echo=error',
  ])('omits a listing that is spoiled by %s', async (text) => {
    const { faults, journal, get } = await journaling(text);
    await get(PROMPTS).catch(() => undefined);

    faults.clear();
    await get(DATASETS);

    await expect.poll(() => journal, PATIENCE).toHaveLength(1);
    expect(journal[0]?.kind).toBe('dataset');
  });

  it('omits a listing whose client disconnected before its end', async () => {
    const world = stillWorld({ promptsPerProject: 20_000 });
    const { url, requests, journal } = await simulate({ world, journal: true });
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.write(`GET ${PROMPTS} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${KEY}\r\n\r\n`);
    socket.once('data', () => socket.destroy());

    await expect.poll(() => requests.count({ status: 200 }), PATIENCE).toBe(1);
    await expect.poll(() => requests.inFlight, PATIENCE).toBe(0);

    expect(journal).toEqual([]);
  });

  it('omits errors and single prompts', async () => {
    const { journal, get } = await journaling();

    await get('/v2/prompts/only/');
    await get('/v2/projects/none/prompts/');
    await get(PROMPTS, { 'x-api-key': 'wrong' });
    await get(DATASETS);

    await expect.poll(() => journal, PATIENCE).toHaveLength(1);
  });
});
