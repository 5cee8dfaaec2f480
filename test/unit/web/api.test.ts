import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { StoreError } from '../../../src/monitor/errors.ts';
import { createPoller } from '../../../src/monitor/poller.ts';
import { openStore } from '../../../src/store/sqlite-store.ts';
import { createApi } from '../../../src/web/api.ts';
import { fakeClock, listingOf, neverStopping, scriptedService } from '../../support/monitor.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

interface Page {
  readonly data: readonly Readonly<Record<string, unknown>>[];
  readonly next_cursor: string | null;
}

/** An API over a real store in which 5 prompts of project p failed and one runs; q was removed. */
async function setUp() {
  const directory = await temporaryDirectory();
  const clock = fakeClock();
  const emit = () => {};
  const store = await openStore({ path: join(directory.path, 'store.db'), clock, emit });
  onTestFinished(async () => {
    await store.close();
    await directory[Symbol.asyncDispose]();
  });
  await store.configureProjects(['p', 'q'], clock.now());
  const service = scriptedService();
  const shutdown = neverStopping();
  const missingAfter = () => 3;
  const poller = createPoller({ service, store, clock, emit, missingAfter, shutdown });
  const poll = (id: string) =>
    poller.poll({ id, datasets: false }, { dueAt: clock.now(), nextAt: undefined });
  service.shows(listingOf({ running: 'RUNNING' }));
  await poll('p');
  await poll('q');
  const failed = Object.fromEntries(['a', 'b', 'c', 'd', 'e'].map((id) => [id, 'FAILED']));
  service.shows(listingOf({ running: 'RUNNING', ...failed }));
  clock.advance(1000);
  await poll('p');
  await store.configureProjects(['p'], clock.now());
  const api = createApi({
    store,
    health: (project) => poller.health(project),
    nextPollAt: (project) => (project === 'p' ? clock.now() + 5000 : undefined),
  });
  const get = async (path: string) => {
    const answer = await api.request(path);
    return { status: answer.status, body: (await answer.json()) as Page & { error?: string } };
  };
  return { store, get, clock };
}

describe('/projects', () => {
  it('shows how each configured project is', async () => {
    const { get, clock } = await setUp();
    const at = new Date(clock.now()).toISOString();

    const { status, body } = await get('/projects');

    expect(status).toBe(200);
    expect(body).toEqual({
      data: [
        {
          project: 'p',
          up: true,
          consecutive_failures: 0,
          reason: null,
          last_poll: at,
          last_success: at,
          next_poll: new Date(clock.now() + 5000).toISOString(),
          prompts: { PENDING: 0, RUNNING: 1, COMPLETED: 0, FAILED: 5, UNKNOWN: 0 },
          missing: 0,
        },
      ],
      next_cursor: null,
    });
  });
});

describe('rows', () => {
  it('have the fields of the commands', async () => {
    const { get } = await setUp();

    const prompts = (await get('/prompts?status=running')).body.data;
    const transitions = (await get('/transitions?limit=1')).body.data;
    const failures = (await get('/failures?limit=1')).body.data;

    expect(prompts).toMatchObject([
      { project: 'p', prompt_id: 'running', status: 'RUNNING', status_raw: null, missing: 0 },
    ]);
    expect(transitions).toMatchObject([{ transition_id: 5, prompt_id: 'e', from: 'NEW' }]);
    expect(failures).toMatchObject([{ transition_id: 5, error_info: null, settled: false }]);
  });

  it('of a removed project are there when it is named', async () => {
    const { get } = await setUp();

    const { status, body } = await get('/prompts?project=q');

    expect(status).toBe(200);
    expect(body.data).toMatchObject([{ project: 'q', prompt_id: 'running' }]);
  });

  it.each(['/prompts', '/transitions', '/failures'])(
    '%s come page by page, each once and in order',
    async (path) => {
      const { get } = await setUp();
      const whole = (await get(`${path}?project=p`)).body;
      const paged: unknown[] = [];
      let cursor: string | null = '';
      while (cursor !== null) {
        const after: string = cursor === '' ? '' : `&cursor=${cursor}`;
        const { body } = await get(`${path}?project=p&limit=2${after}`);
        expect(body.data.length).toBeLessThanOrEqual(2);
        paged.push(...body.data);
        cursor = body.next_cursor;
      }

      expect(whole.next_cursor).toBeNull();
      expect(whole.data.length).toBeGreaterThanOrEqual(5);
      expect(paged).toEqual(whole.data);
    },
  );
});

it.each([
  ['/prompts?status=PAUSED', 400, 'status'],
  ['/prompts?limit=0', 400, 'limit'],
  ['/prompts?limit=1001', 400, 'limit'],
  ['/failures?limit=ten', 400, 'limit'],
  ['/transitions?status=FAILED', 400, 'status'],
  ['/transitions?cursor=!', 400, 'cursor'],
  ['/prompts?cursor=MQ', 400, 'cursor'],
  ['/projects?limit=1', 400, 'limit'],
  ['/failures?project=nobody', 404, 'nobody'],
])('says what is wrong with %s', async (path, status, word) => {
  const { get } = await setUp();

  const answer = await get(path);

  expect(answer.status).toBe(status);
  expect(answer.body.error).toContain(word);
});

it('says that the store cannot be read, and not why', async () => {
  const { store } = await setUp();
  const api = createApi({
    store: { ...store, failures: () => Promise.reject(new StoreError('corrupt', 'page 7')) },
    health: () => {
      throw new Error('not asked for');
    },
    nextPollAt: () => undefined,
  });

  const answer = await api.request('/failures');

  expect(answer.status).toBe(503);
  expect(await answer.text()).not.toContain('page 7');
});
