import { expect, it, onTestFinished } from 'vitest';
import { DEFAULT_KEY, startSimulator } from '../../../src/simulator/service.ts';
import { World } from '../../../src/simulator/world.ts';
import { startWorld } from '../../support/service.ts';

const PROMPTS = '/v2/projects/checkout-bot/prompts/';
const ERROR = { error_id: 'RATE_LIMIT_EXCEEDED', error_msg: 'Too much.\nWait.' };

/** Serves two projects; one has a prompt and two datasets. */
async function setUp() {
  const world = new World(['checkout-bot', 'search-ranking']);
  const id = world.addPrompt('checkout-bot', { id: 'a/b %', status: 'RUNNING' });
  for (const [n, status] of ['COMPLETED', undefined].entries()) {
    const dataset = { id: `d${n}`, name: 'data', size: 1, manifest: {}, status };
    world.putDataset('checkout-bot', dataset);
  }
  const keys = new Map([
    ['for-all', undefined],
    ['for-search', 'search-ranking'],
  ]);
  const service = await startWorld(world, keys);
  onTestFinished(() => service[Symbol.asyncDispose]());
  const ask = async (path: string, headers: Record<string, string> = {}, method = 'GET') => {
    const given = { 'x-api-key': 'for-all', ...headers };
    const answer = await fetch(service.url + path, { headers: given, method, redirect: 'manual' });
    const text = await answer.text();
    return { answer, body: text === '' ? undefined : (JSON.parse(text) as unknown) };
  };
  return { world, id, ask, url: service.url };
}

it('the service lists the fields that its documentation names, and details of a single prompt', async () => {
  const { world, id, ask } = await setUp();
  const { timestamp = '' } = world.prompts('checkout-bot')?.get(id) ?? {};
  expect((await ask(PROMPTS)).body).toEqual([
    {
      id,
      name: expect.any(String),
      timestamp,
      dataset: expect.any(String),
      experiment: null,
      task_description: expect.any(String),
      metric: expect.any(String),
      status: 'RUNNING',
    },
  ]);
  const { body } = await ask('/v2/projects/checkout-bot/datasets/');
  expect(body).toMatchObject([{ size: 1, manifest: {}, status: 'COMPLETED' }, { id: 'd1' }]);
  expect((body as object[]).map((item) => 'status' in item)).toEqual([true, false]);

  world.setStatus(id, 'FAILED', ERROR);
  const detail = (await ask(`/v2/prompts/${encodeURIComponent(id)}/`)).body;
  expect(detail).toMatchObject({ status: 'FAILED', history: [{}, {}], error_info: ERROR });
  expect(detail).not.toHaveProperty('id');
});

it.each([
  ['no key', PROMPTS, '', 401, 'API key is missing'],
  ['a wrong key', PROMPTS, 'wrong', 401, 'API key is not valid'],
  ['the key of another project', PROMPTS, 'for-search', 403, /not valid for this project/],
  ['an unknown project', '/v2/projects/none/prompts/', 'for-all', 404, 'Not Found'],
  ['an unknown prompt', '/v2/prompts/none/', 'for-all', 404, 'Not Found'],
  ['an unknown path', '/v2/experiments/', 'for-all', 404, 'Not Found'],
])('the service rejects %s', async (_, path, key, status, detail) => {
  const { ask } = await setUp();
  const { answer, body } = await ask(path, { 'x-api-key': key });
  expect(answer.status).toBe(status);
  expect(body).toEqual({ detail: expect.stringMatching(detail) });
});

it('the service answers 405 to a POST, and redirects a path without its last slash', async () => {
  const { ask, url } = await setUp();
  expect((await ask(PROMPTS, {}, 'POST')).answer.status).toBe(405);
  const { answer } = await ask(`${PROMPTS.slice(0, -1)}?page=2`);
  expect(answer.status).toBe(307);
  expect(answer.headers.get('location')).toBe(`${url}${PROMPTS}?page=2`);
});

it('the service answers 304 until a prompt changes', async () => {
  const { world, id, ask } = await setUp();
  const etag = async () => (await ask(PROMPTS)).answer.headers.get('etag') ?? '';
  const first = await etag();
  const again = await ask(PROMPTS, { 'if-none-match': first });
  expect([again.answer.status, again.body]).toEqual([304, undefined]);
  for (const change of [
    () => world.setStatus(id, 'FAILED'),
    () => world.addPrompt('checkout-bot'),
    () => world.removePrompt(id),
  ]) {
    const before = await etag();
    change();
    expect((await ask(PROMPTS, { 'if-none-match': before })).answer.status).toBe(200);
  }
});

it('the simulator lets its world live, survives a broken escape, and names a port that is taken', async () => {
  const steps = Promise.withResolvers<void>();
  const options = { port: 0, tickMs: 1, step: () => steps.resolve() };
  const simulator = await startSimulator(new World(['p']), options);
  onTestFinished(() => simulator.close());
  await steps.promise;
  const broken = await fetch(`${simulator.url}/v2/prompts/%zz/`, {
    headers: { 'x-api-key': DEFAULT_KEY },
  });
  expect(broken.status).toBe(404);
  const port = Number(new URL(simulator.url).port);
  await expect(startSimulator(new World([]), { ...options, port })).rejects.toMatchObject({
    code: 'EADDRINUSE',
  });
});
