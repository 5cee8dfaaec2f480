import { networkInterfaces } from 'node:os';
import { describe, expect, it } from 'vitest';
import { PROMPTS, simulate } from './simulation.ts';
import { PATIENCE } from '../../support/evalwatch.ts';

async function steered() {
  const simulation = await simulate({ journal: true });
  const control = async (method: string, path: string, body?: unknown) => {
    const answer = await fetch(`${simulation.url}/_simulator/${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: answer.status, text: await answer.text() };
  };
  const lines = async (path: string): Promise<unknown[]> =>
    (await control('GET', path)).text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as unknown);
  return { ...simulation, control, lines };
}

describe('The control API', () => {
  it('adds, changes and removes prompts, and returns these moves', async () => {
    const { control, lines, getJson } = await steered();
    const errorInfo = { error_id: 'E', error_msg: 'broken' };

    await control('POST', 'prompts/checkout-bot/a%2Fb', { status: 'PENDING' });
    await control('POST', 'prompts/checkout-bot/a%2Fb', {
      status: 'FAILED',
      error_info: errorInfo,
    });
    expect(await getJson('/v2/prompts/a%2Fb/')).toMatchObject({ error_info: errorInfo });
    await control('DELETE', 'prompts/checkout-bot/a%2Fb');

    expect(await lines('moves')).toMatchObject([
      { seq: 1, id: 'a/b', from: 'ABSENT', to: 'PENDING' },
      { seq: 2, id: 'a/b', from: 'PENDING', to: 'FAILED' },
      { seq: 3, id: 'a/b', from: 'FAILED', to: 'ABSENT' },
    ]);
    expect(await lines('moves?since=2')).toMatchObject([{ seq: 3 }]);
  });

  it('returns the journal, all of it or after a sequence number', async () => {
    const { get, lines, journal } = await steered();
    await get(PROMPTS);
    await get(PROMPTS);
    await expect.poll(() => journal, PATIENCE).toHaveLength(2);

    expect(await lines('journal')).toEqual(JSON.parse(JSON.stringify(journal)));
    expect(await lines('journal?since=1')).toHaveLength(1);
  });

  it('replaces the faults, by text or by rules', async () => {
    const { control, get } = await steered();

    await control('POST', 'faults', 'status=500');
    expect((await get(PROMPTS)).status).toBe(500);

    await control('POST', 'faults', [
      { fault: 'status=503/1', project: 'checkout-bot', endpoint: 'list_prompts', count: 1 },
    ]);
    expect((await get(PROMPTS)).status).toBe(503);
    expect((await get(PROMPTS)).status).toBe(200);
  });

  it('replaces and revokes keys', async () => {
    const { control, keys, get } = await steered();

    await control('POST', 'keys', { set: 'the-next-key' });
    expect((await get(PROMPTS)).status).toBe(401);
    expect((await get(PROMPTS, { 'x-api-key': 'the-next-key' })).status).toBe(200);

    await control('POST', 'keys', { set: 'own-key', project: 'checkout-bot' });
    await control('POST', 'keys', { revoke: 'the-next-key' });
    expect(keys.keyOf('checkout-bot')).toBe('own-key');
    expect(keys.keyOf('search-ranking')).toBeUndefined();
  });

  it.each([
    ['POST', 'faults', 'nonsense', 'Fault \\"nonsense\\"'],
    ['POST', 'faults', 7, 'Expected a text or an array of rules.'],
    ['POST', 'faults', [{ fault: 'hang', endpoint: 'list' }], 'to be one of list_prompts'],
    ['POST', 'faults', [{ fault: 'hang', count: 0 }], 'to be a number above 0'],
    ['POST', 'prompts/checkout-bot/x', {}, 'Expected \\"status\\" to be a text.'],
    ['POST', 'prompts/checkout-bot', { status: 'FAILED' }, 'Expected prompts/{project}/{id}.'],
    ['POST', 'prompts/none/x', { status: 'FAILED' }, 'There is no project'],
    ['DELETE', 'prompts/checkout-bot/x', undefined, 'has no prompt'],
    ['POST', 'keys', {}, 'Expected \\"set\\" to be a text.'],
    ['POST', 'keys', undefined, 'JSON'],
    ['POST', 'keys', [], 'Expected a JSON object.'],
    ['POST', 'faults', ['hang'], 'Expected a JSON object.'],
    ['GET', 'moves?since=abc', undefined, 'Expected \\"since\\" to be a whole number.'],
    ['GET', 'journal?since=-1', undefined, 'Expected \\"since\\" to be a whole number.'],
  ])('answers 400 to %s %s with the body %j', async (method, path, body, message) => {
    const { control } = await steered();

    const answer = await control(method, path, body);

    expect(answer.status).toBe(400);
    expect(answer.text).toContain(message);
  });

  it('answers 404 to an unknown path or method', async () => {
    const { control } = await steered();

    expect((await control('GET', 'nothing')).status).toBe(404);
    expect((await control('DELETE', 'moves')).status).toBe(404);
  });
});

const outside = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find((address) => !address.internal && address.family === 'IPv4');

it.runIf(outside)(
  'The control API answers 403 to a request from a non-loopback address',
  async () => {
    const { url } = await simulate({ host: '0.0.0.0' });
    const address = url.replace('0.0.0.0', outside?.address ?? '');

    expect((await fetch(`${address}/_simulator/moves`)).status).toBe(403);
  },
);
