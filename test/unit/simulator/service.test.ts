import { parseFaults } from '../../../src/simulator/faults/fault-text.ts';
import { gunzipSync } from 'node:zlib';
import { request } from 'undici';
import { describe, expect, it } from 'vitest';
import { DATASETS, KEY, PROMPTS, simulate, stillWorld } from './simulation.ts';

describe('A listing of prompts', () => {
  it('has each prompt, with all of its fields except llm, history and error_info', async () => {
    const { world, getJson } = await simulate();
    const prompts = [...(world.prompts('checkout-bot')?.values() ?? [])];

    const items = await getJson(PROMPTS);

    expect(items).toHaveLength(5);
    expect(items).toEqual(
      prompts.map((prompt) => ({
        ...prompt,
        llm: undefined,
        history: undefined,
        error_info: undefined,
      })),
    );
  });

  it('shows a status change at once', async () => {
    const { world, getJson } = await simulate();
    const id = world.addPrompt('checkout-bot');
    await getJson(PROMPTS);

    world.setStatus('checkout-bot', id, 'FAILED');

    expect(await getJson(PROMPTS)).toContainEqual(
      expect.objectContaining({ id, status: 'FAILED' }),
    );
  });
});

it('A listing of datasets has size and manifest, and a status only for datasets that have one', async () => {
  const { getJson } = await simulate();

  const items = (await getJson(DATASETS)) as Record<string, unknown>[];

  expect(items).toHaveLength(3);
  expect(items[0]).toMatchObject({ size: expect.any(Number), manifest: expect.any(Object) });
  expect(items.map((item) => 'status' in item)).toEqual([true, true, false]);
});

describe('A single prompt', () => {
  it('has llm, history and error_info, and no id', async () => {
    const { world, getJson } = await simulate();
    const errorInfo = { error_id: 'RATE_LIMIT_EXCEEDED', error_msg: 'Too much.\nWait.' };
    const id = world.addPrompt('checkout-bot');
    world.setStatus('checkout-bot', id, 'FAILED', errorInfo);

    const prompt = await getJson(`/v2/prompts/${id}/`);

    expect(prompt).toMatchObject({ llm: expect.any(String), status: 'FAILED', history: [{}, {}] });
    expect(prompt).toHaveProperty('error_info', errorInfo);
    expect(prompt).not.toHaveProperty('id');
  });

  it('is found by an id of any characters, encoded as one segment', async () => {
    const { world, getJson } = await simulate({
      world: stillWorld({ oddIds: true, promptsPerProject: 20 }),
    });

    for (const [id, prompt] of world.prompts('checkout-bot') ?? []) {
      if (id === '..') continue;
      expect(await getJson(`/v2/prompts/${encodeURIComponent(id)}/`)).toHaveProperty(
        'name',
        prompt.name,
      );
    }
  });
});

describe('The service', () => {
  it.each([
    ['no key', PROMPTS, '', 401, { detail: 'API key is missing' }],
    ['a wrong key', PROMPTS, 'wrong', 401, { detail: 'API key is not valid' }],
    ['a key of another project', PROMPTS, 'key-of-search', 403, { detail: expect.any(String) }],
    ['an unknown project', '/v2/projects/none/prompts/', 'key-of-checkout', 404, expect.anything()],
    ['an unknown prompt', '/v2/prompts/none/', 'key-of-checkout', 404, { detail: 'Not Found' }],
    ['an unknown path', '/v2/experiments/', 'key-of-checkout', 404, { detail: 'Not Found' }],
    ['an empty id', '/v2/projects//prompts/', 'key-of-checkout', 404, { detail: 'Not Found' }],
  ])('rejects %s', async (_, path, key, status, body) => {
    const keys = { 'checkout-bot': 'key-of-checkout', 'search-ranking': 'key-of-search' };
    const { get } = await simulate({ keys });

    const answer = await get(path, { 'x-api-key': key });

    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.body.toString())).toEqual(body);
  });

  it.each([
    ['too long', 'x'.repeat(513), 'string_too_long'],
    ['with a control character', 'a%00b', 'string_pattern_mismatch'],
    ['with a broken escape', '%zz', 'value_error'],
    ['that is not UTF-8', '%ff', 'value_error'],
  ])('rejects an id %s with 422 and the validation body', async (_, id, type) => {
    const { get } = await simulate();

    const ofProject = await get(`/v2/projects/${id}/datasets/`);
    const ofPrompt = await get(`/v2/prompts/${id}/`);

    expect([ofProject.status, ofPrompt.status]).toEqual([422, 422]);
    expect(JSON.parse(ofProject.body.toString())).toEqual({
      detail: [{ loc: ['path', 'projectid'], msg: expect.any(String), type }],
    });
    expect(JSON.parse(ofPrompt.body.toString())).toMatchObject({
      detail: [{ loc: ['path', 'promptid'] }],
    });
  });

  it('answers 405 to methods other than GET', async () => {
    const { url } = await simulate();

    const answer = await request(url + PROMPTS, { method: 'POST', headers: { 'x-api-key': KEY } });

    expect(answer.statusCode).toBe(405);
    expect(answer.headers['allow']).toBe('GET');
    expect(await answer.body.json()).toEqual({ detail: 'Method Not Allowed' });
  });
});

it('A path without the trailing slash is redirected to the one with it', async () => {
  const { url, get } = await simulate();

  const answer = await get(`${PROMPTS.slice(0, -1)}?page=2`);

  expect(answer.status).toBe(307);
  expect(answer.headers['location']).toBe(`${url}${PROMPTS}?page=2`);
});

describe('Keys', () => {
  it('can be revoked and replaced at any time', async () => {
    const { keys, get } = await simulate();

    keys.revoke(KEY);
    expect((await get(PROMPTS)).status).toBe(401);

    keys.set('the-next-key');
    expect((await get(PROMPTS)).status).toBe(401);
    expect((await get(PROMPTS, { 'x-api-key': 'the-next-key' })).status).toBe(200);
    expect(keys.keyOf('checkout-bot')).toBe('the-next-key');
  });
});

describe('A conditional request', () => {
  it.each(['strong', 'weak'] as const)(
    'with a %s ETag is answered with 304 until a prompt changes',
    async (etag) => {
      const { world, get } = await simulate({ etag });
      const id = world.addPrompt('checkout-bot');
      const tag = String((await get(PROMPTS)).headers['etag']);
      expect(tag.startsWith('W/')).toBe(etag === 'weak');

      const unchanged = await get(PROMPTS, { 'if-none-match': `"other", ${tag}` });
      expect(unchanged.status).toBe(304);
      expect(unchanged.headers['etag']).toBe(tag);
      expect(unchanged.body).toHaveLength(0);

      world.setStatus('checkout-bot', id, 'FAILED');
      const changed = await get(PROMPTS, { 'if-none-match': tag });
      expect(changed.status).toBe(200);
      expect(changed.headers['etag']).not.toBe(tag);
    },
  );

  it('is answered in full by a service without ETags', async () => {
    const { get } = await simulate({ etag: 'none' });

    const answer = await get(PROMPTS, { 'if-none-match': '*' });

    expect(answer.status).toBe(200);
    expect(answer.headers).not.toHaveProperty('etag');
  });
});

describe('Compression', () => {
  it('is gzip if the client accepts it', async () => {
    const { get } = await simulate({ compression: true });

    const answer = await get(PROMPTS, { 'accept-encoding': 'gzip;q=0.5, br' });

    expect(answer.headers['content-encoding']).toBe('gzip');
    expect(JSON.parse(gunzipSync(answer.body).toString())).toHaveLength(5);
  });

  it('is applied to a listing with an items fault', async () => {
    const { get } = await simulate({ compression: true, faults: parseFaults('items=no-id') });

    const answer = await get(PROMPTS, { 'accept-encoding': 'gzip' });

    expect(answer.headers['content-encoding']).toBe('gzip');
    const items: readonly object[] = JSON.parse(gunzipSync(answer.body).toString());
    expect(items.map((item) => 'id' in item)).toEqual([false, true, true, true, true]);
  });
});

it('The request log keeps the headers, the endpoint and the response status of each request', async () => {
  const { requests, get } = await simulate();

  await get(PROMPTS, { 'if-none-match': '"x"' });
  await get('/v2/prompts/none/');
  await get('/elsewhere');

  expect(requests.count()).toBe(3);
  expect(requests.count({ endpoint: 'list_prompts', project: 'checkout-bot', status: 200 })).toBe(
    1,
  );
  expect(requests.count({ endpoint: 'get_prompt', status: 404 })).toBe(1);
  expect(requests.recent[0]).toMatchObject({ method: 'GET', url: PROMPTS });
  expect(requests.recent[0]?.headers).toMatchObject({ 'x-api-key': KEY, 'if-none-match': '"x"' });
  expect(requests.last).toMatchObject({ endpoint: 'other', project: undefined, status: 404 });
  expect(requests.maxInFlight).toBe(1);
});

it('A listing of 20,000 prompts is served, and again with an added prompt at its end', async () => {
  const world = stillWorld({ projects: ['checkout-bot'], promptsPerProject: 20_000 });
  const { get } = await simulate({ world });
  const first = await get(PROMPTS);

  const id = world.addPrompt('checkout-bot');
  const second = await get(PROMPTS);

  expect(first.body.length).toBeGreaterThan(6_000_000);
  expect(second.body.indexOf(first.body.subarray(0, -1))).toBe(0);
  expect(second.body.subarray(first.body.length).toString()).toContain(id);
});
