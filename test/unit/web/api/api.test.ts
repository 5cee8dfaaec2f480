import { describe, expect, it } from 'vitest';
import { EventFeed } from '../../../../src/web/events/feed.ts';
import { causeOf } from '../../../../src/domain/cause.ts';
import type { ErrorInfo } from '../../../../src/domain/failure.ts';
import { type FailedRequest, StoreError } from '../../../../src/monitor/errors.ts';
import type { FailureRow } from '../../../../src/monitor/ports/store.ts';
import { BY_DEFAULT } from '../../../support/expected.ts';
import type { ShownProject, WebContent } from '../../../../src/web/content.ts';
import { type Items, pollItems } from '../../../support/experiments.ts';
import { createApi, startApi } from './api-under-test.ts';
import { withCause } from '../../../support/failures.ts';

interface Page {
  readonly data: readonly Readonly<Record<string, unknown>>[];
  readonly next_cursor: string | null;
}

/** Sets up an API over a real store in which 5 prompts of project p failed and one runs; q was removed. */
async function setUp() {
  const { api, content, store, clock, poll, request } = await startApi();
  await poll('p', { running: 'RUNNING' });
  await poll('q', { running: 'RUNNING' });
  const failed = Object.fromEntries(['a', 'b', 'c', 'd', 'e'].map((id) => [id, 'FAILED']));
  await poll('p', { running: 'RUNNING', ...failed });
  await store.configureProjects(['p'], clock.now());
  const get = async (path: string) => {
    const answer = await request(path);
    return { status: answer.status, body: (await answer.json()) as Page & { error?: string } };
  };
  return { api, content, store, get, clock, poll };
}

function shownOf(content: WebContent): ShownProject {
  const shown = content.project('p');
  if (shown === undefined) throw new Error('p is configured');
  return shown;
}

describe('/projects', () => {
  it('returns the state of each configured project', async () => {
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
          last_error: null,
          last_poll: at,
          last_success: at,
          next_poll: new Date(clock.now() + 5000).toISOString(),
          prompts: { PENDING: 0, RUNNING: 1, COMPLETED: 0, FAILED: 5, UNKNOWN: 0 },
          missing: 0,
          team: 'search',
          pause: null,
          expectations: {
            PENDING: { limit_seconds: 3600, limit_source: 'default', typical_seconds: null },
            RUNNING: { limit_seconds: 14_400, limit_source: 'default', typical_seconds: null },
          },
          max_failure_ratio: 0.2,
        },
      ],
      next_cursor: null,
    });
  });

  it('returns the escaped, truncated error of the last poll until a poll succeeds', async () => {
    const { content, get, poll } = await setUp();
    const projectWith = async (change: Partial<FailedRequest>) => {
      const failure = { message: 'the service answered 404', ...change };
      const shown = shownOf(content);
      const project = () => ({ ...shown, health: { ...shown.health, failure } });
      const answer = await createApi({ ...content, project }).request('/projects');
      const text = await answer.text();
      return { text, project: (JSON.parse(text) as Page).data[0] };
    };
    const url = 'https://evaluation.example.com/v2/projects/p/prompts/';
    const detail = `No \u202esuch project ${'x'.repeat(282)}😀`;

    const answered = await projectWith({ url, statusCode: 404, detail });
    expect(answered.project?.['last_error']).toEqual({
      message: 'the service answered 404',
      url,
      status_code: 404,
      location: null,
      detail: `No \u202esuch project ${'x'.repeat(282)}\ufffd`,
    });
    expect(answered.text).not.toContain('\u202e');
    const location = 'https://sso.example.com/'.padEnd(2048, 'x');
    expect((await projectWith({ location })).project?.['last_error']).toMatchObject({
      url: null,
      status_code: null,
      location: location.slice(0, 300),
    });

    await poll('p');
    expect((await get('/projects')).body.data).toMatchObject([
      { up: false, reason: 'timeout', last_error: { status_code: null, detail: null } },
    ]);
    await poll('p', { a: 'RUNNING' });
    expect((await get('/projects')).body.data).toMatchObject([{ up: true, last_error: null }]);
  });

  it('returns the expectations of a project, with null for those that are off or unknown', async () => {
    const { content } = await setUp();
    const rowWith = async (change: Partial<ShownProject> | undefined) => {
      const project = () => change && { ...shownOf(content), ...change };
      const api = createApi({ ...content, project });
      return ((await (await api.request('/projects')).json()) as Page).data[0];
    };
    const unknown = { limit_seconds: null, limit_source: null, typical_seconds: null };

    const learned = { limitMs: 1_246_783.4, source: 'learned', typicalMs: 20_700.5 } as const;
    const off = { limitMs: undefined, source: 'off', typicalMs: 20_000 } as const;
    expect(await rowWith({ expectations: { PENDING: learned, RUNNING: off } })).toMatchObject({
      expectations: {
        PENDING: { limit_seconds: 1246.783, limit_source: 'learned', typical_seconds: 20.701 },
        RUNNING: { limit_seconds: null, limit_source: 'off', typical_seconds: 20 },
      },
    });
    const expects = { ...BY_DEFAULT.expect, maxFailureRatio: undefined };
    expect(await rowWith({ team: '', expect: expects })).toMatchObject({
      team: null,
      max_failure_ratio: null,
    });
    expect(await rowWith(undefined)).toMatchObject({
      team: null,
      max_failure_ratio: null,
      expectations: { PENDING: unknown, RUNNING: unknown },
    });
  });
});

describe('/prompts', () => {
  it('returns the limit of waiting prompts, and null for other prompts and removed projects', async () => {
    const { get, poll } = await setUp();
    await poll('p', { running: 'RUNNING', queued: 'PENDING' });

    const { data } = (await get('/prompts')).body;
    const limits = data.map(({ prompt_id, limit_seconds, limit_source, typical_seconds }) => {
      return [prompt_id, limit_seconds, limit_source, typical_seconds];
    });

    expect(limits).toContainEqual(['running', 14_400, 'default', null]);
    expect(limits).toContainEqual(['queued', 3600, 'default', null]);
    expect(limits).toContainEqual(['a', null, null, null]);
    expect((await get('/prompts?project=q')).body.data).toMatchObject([
      {
        project: 'q',
        prompt_id: 'running',
        limit_seconds: null,
        limit_source: null,
        typical_seconds: null,
      },
    ]);
  });
});

describe('one project or prompt', () => {
  /** Ids that a path has to encode, or that are no text of a URL. */
  const IDS = [
    'a/b',
    '../../projects',
    '100%',
    '%2e%2e',
    'a b?x=1#y',
    '\\..\\',
    '\u202eü\n\t\u001b',
    '😀'.repeat(250),
  ];

  it.each(IDS)('is found by its id %j, percent-encoded once', async (id) => {
    const { request, poll } = await startApi(['p', id]);
    await poll(id, { [id]: 'RUNNING', other: 'RUNNING' });
    const part = encodeURIComponent(id);
    const read = async (path: string) => {
      const answer = await request(path);
      const text = await answer.text();
      expect(answer.status).toBe(200);
      expect(text).not.toMatch(/\p{C}/u);
      return JSON.parse(text) as Page;
    };
    const projects = (await read('/projects')).data;
    const prompts = (await read(`/prompts?project=${part}`)).data;

    expect(await read(`/projects/${part}`)).toEqual({
      data: projects.find(({ project }) => project === id),
    });
    expect(await read(`/prompts/${part}/${part}`)).toEqual({
      data: prompts.find(({ prompt_id }) => prompt_id === id),
    });
  });

  it.each([
    ['/projects/nobody', 'unknown project "nobody"'],
    ['/projects/q', 'unknown project "q"'],
    ['/prompts/nobody/a', 'unknown project "nobody"'],
    ['/prompts/p/nobody', 'unknown prompt "nobody"'],
  ])('is answered 404 at %s', async (path, error) => {
    const { get } = await setUp();
    expect(await get(path)).toEqual({ status: 404, body: { error } });
  });

  it('of a removed project is found as long as the store has the prompt', async () => {
    const { get } = await setUp();
    const { status, body } = await get('/prompts/q/running');
    expect([status, body.data]).toMatchObject([200, { project: 'q', limit_seconds: null }]);
  });

  it('is unknown once the prompt is gone; its transitions stay', async () => {
    const { get, poll } = await setUp();
    for (let polls = 0; polls < 3; polls += 1) await poll('p', { running: 'RUNNING' });

    expect((await get('/prompts/p/a')).status).toBe(404);
    expect((await get('/transitions?prompt_id=a')).body.data).toMatchObject([{ prompt_id: 'a' }]);
  });
});

describe('rows', () => {
  it('describe a running prompt, the newest transition and its unsettled failure', async () => {
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

  it('are printable ASCII, and parse to the original text', async () => {
    const { api, poll } = await setUp();
    const id = '\u009b2J\u202egpj\u2028\u200b\u{e0041}\u001b';
    await poll('p', { [id]: 'FAILED' });

    for (const path of ['/prompts', '/transitions', '/failures', '/prompts?project=\u009b2J']) {
      const text = await (await api.request(path)).text();
      expect(text).toMatch(/^[ -~]+$/);
      if (path.includes('?')) continue;
      const { data } = JSON.parse(text) as Page;
      expect(data.map((row) => row['prompt_id'])).toContain(id);
    }
  });

  it.each(['/prompts', '/transitions', '/failures'])(
    'of %s are paginated, each once and in order',
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

describe('causes', () => {
  /** Settles failures of p and q with three causes, 3, 2 and 1 of them. The most frequent cause has an older one too. */
  async function setUpCauses() {
    const given = await startApi();
    const { store, clock, poll, request } = given;
    async function fail(project: string, infos: readonly (ErrorInfo | undefined)[]) {
      const ids = infos.map((_, index) => `${clock.now()}-${index}`);
      await poll(project, {});
      await poll(project, Object.fromEntries(ids.map((id) => [id, 'FAILED'])));
      const pending = await store.pendingFailures({ projects: [project], limitPerProject: 9 });
      for (const [index, failure] of pending.entries()) {
        const errorInfo = infos[index];
        const settlement =
          errorInfo === undefined
            ? ({ reason: 'not_found' } as const)
            : { errorInfo, errorMsgTruncated: false };
        await store.settleFailure(failure, withCause(settlement), clock.now());
      }
      return clock.now();
    }
    const row = (n: number) => ({ error_id: 'PARSE', error_msg: `Row ${n} is not "${n}"` });
    await fail('p', [row(1)]);
    clock.advance(24 * HOUR);
    const first = await fail('p', [row(2), row(3), LOUD]);
    clock.advance(HOUR);
    const second = await fail('q', [row(4), undefined, undefined]);
    const get = async (path: string) => {
      const answer = await request(path);
      return (await answer.json()) as Page;
    };
    return { ...given, get, first: iso(first), second: iso(second), row };
  }
  const HOUR = 3_600_000;
  const iso = (ms: number) => new Date(ms).toISOString();
  const LOUD = { error_id: 'E\u202e\u001b', error_msg: 'over and out '.repeat(50) };
  const idsOf = ({ data }: Page) => data.map(({ cause }) => cause);

  it('are returned with their count, projects and times, the most frequent first', async () => {
    const { get, first, second, row } = await setUpCauses();

    const answer = await get('/causes');

    expect(answer).toEqual({
      data: [
        {
          cause: causeOf(row(1)).id,
          error_id: 'PARSE',
          shape: causeOf(row(1)).shape,
          count: 3,
          projects: 2,
          first_seen: first,
          last_seen: second,
          is_new: false,
          transition_id: 5,
          last_error_msg: 'Row 4 is not "4"',
        },
        {
          cause: causeOf(undefined).id,
          error_id: null,
          shape: '',
          count: 2,
          projects: 1,
          first_seen: second,
          last_seen: second,
          is_new: true,
          transition_id: 7,
          last_error_msg: null,
        },
        expect.objectContaining({
          cause: causeOf(LOUD).id,
          count: 1,
          is_new: true,
          last_error_msg: LOUD.error_msg.slice(0, 500),
        }),
      ],
      next_cursor: null,
    });
  });

  it('beyond the limit are summed up in a last row', async () => {
    const { get } = await setUpCauses();
    const other = {
      cause: 'other',
      error_id: null,
      shape: null,
      count: 3,
      projects: null,
      first_seen: null,
      last_seen: null,
      is_new: null,
      transition_id: null,
      last_error_msg: null,
    };

    expect((await get('/causes?limit=1')).data).toEqual([
      expect.objectContaining({ count: 3 }),
      other,
    ]);
    expect((await get('/causes?limit=2')).data[2]).toEqual({ ...other, count: 1 });
    expect(idsOf(await get('/causes?limit=3'))).not.toContain('other');
  });

  it('that do not fit into a response are summed up in the last row', async () => {
    const { content } = await startApi();
    const causes = Array.from({ length: 1000 }, (_, n) => ({
      cause: `${n}`.padStart(16, '0'),
      count: 2,
      projects: 1,
      firstAt: 0,
      lastAt: 0,
      isNew: true,
      transitionId: 1,
      errorInfo: { error_id: '\u{e0041}'.repeat(1024), error_msg: null },
    }));
    const store = {
      ...content.store,
      causes: async () => ({ causes, others: { causes: 1, count: 5 } }),
    };

    const text = await (
      await createApi({ ...content, store }).request('/causes?limit=1000')
    ).text();

    const { data } = JSON.parse(text) as Page;
    expect(text.length).toBeLessThan(1_100_000);
    expect(data.at(-1)).toMatchObject({ cause: 'other' });
    const counts = data.map(({ count }) => Number(count));
    expect(counts.reduce((sum, count) => sum + count)).toBe(2005);
  });
});

describe('experiments', () => {
  /** Lets `nightly & 1` finish with a failure, `none` run, and a prompt without an experiment fail. */
  async function setUpExperiments() {
    const given = await startApi();
    const { store, clock, request } = given;
    const at = clock.now();
    const poll = (items: Items, seconds: number) =>
      pollItems(store, 'p', items, at + seconds * 1000);
    const other = { c: ['RUNNING', 'none'] } as const;
    await poll({ ...other, a: ['RUNNING', NAME], b: ['RUNNING', NAME], d: ['RUNNING'] }, 0);
    await poll({ ...other, a: ['FAILED', NAME], b: ['RUNNING', NAME], d: ['FAILED'] }, 1);
    const end = { ...other, a: ['FAILED', NAME], b: ['COMPLETED', NAME], d: ['FAILED'] } as const;
    await poll(end, 2.5);
    await poll(end, 4);
    await pollItems(store, 'q', { e: ['RUNNING', NAME] }, at);
    for (const failure of await store.pendingFailures({ limitPerProject: 9 })) {
      const errorInfo = { error_id: failure.promptId, error_msg: null };
      await store.settleFailure(failure, withCause({ errorInfo, errorMsgTruncated: false }), at);
    }
    clock.set(at + 5000);
    const get = async (path: string) => (await (await request(path)).json()) as Page;
    return { get, iso: (seconds: number) => new Date(at + seconds * 1000).toISOString() };
  }
  const NAME = 'nightly & \u202e1';
  const COUNTS = { PENDING: 0, RUNNING: 0, COMPLETED: 0, FAILED: 0, UNKNOWN: 0 };

  it('are returned with their state, counts and times, the last move first', async () => {
    const { get, iso } = await setUpExperiments();
    expect(await get('/experiments?project=p')).toEqual({
      data: [
        {
          project: 'p',
          experiment: NAME,
          state: 'finished',
          prompts: { ...COUNTS, COMPLETED: 1, FAILED: 1 },
          first_move: iso(1),
          last_move: iso(2.5),
          ended: iso(2.5),
          finished: iso(4),
          duration_seconds: 1.5,
        },
        {
          project: 'p',
          experiment: 'none',
          state: 'running',
          prompts: { ...COUNTS, RUNNING: 1 },
          first_move: null,
          last_move: null,
          ended: null,
          finished: null,
          duration_seconds: null,
        },
      ],
      next_cursor: null,
    });
  });

  it.each<[path: string, experiment: string, ids: readonly string[]]>([
    ['/prompts', NAME, ['a', 'b']],
    ['/transitions', '', ['d']],
    ['/failures', NAME, ['a']],
    ['/causes', '', ['d']],
  ])('restrict %s to prompts in %j', async (path, experiment, ids) => {
    const { get } = await setUpExperiments();
    const query = new URLSearchParams({ project: 'p', experiment }).toString();
    const { data } = await get(`${path}?${query}`);
    const found = data.map((row) => String(row[path === '/causes' ? 'error_id' : 'prompt_id']));
    expect(found.toSorted()).toEqual(ids);
  });

  it.each(['/prompts', '/transitions', '/failures', '/causes'])(
    'dataset= and metric= restrict %s, too',
    async (path) => {
      const { get } = await setUpExperiments();
      for (const label of ['dataset', 'metric']) {
        expect((await get(`${path}?project=p&${label}=`)).data.length).toBeGreaterThan(1);
        expect((await get(`${path}?project=p&${label}=x`)).data).toEqual([]);
      }
    },
  );
});

describe('a page of rows', () => {
  /** Returns failures with this message, newest first. */
  const failures = (count: number, message: string) =>
    Array.from({ length: count }, (_, n): FailureRow => {
      const errorInfo = { error_id: 'E', error_msg: message };
      const settlement = { errorInfo, errorMsgTruncated: false };
      return {
        transitionId: count - n,
        at: 0,
        project: 'p',
        promptId: 'a',
        promptName: undefined,
        experiment: undefined,
        settlement,
        cause: '0123456789abcdef',
      };
    });

  it('ends early if rows are long, with a cursor for the next page', async () => {
    const { content } = await startApi();
    const all = failures(1000, 'x'.repeat(8000));
    const asked: number[] = [];
    const store = {
      ...content.store,
      failures: async ({ limit = 0, afterTransition = Infinity }) => {
        asked.push(limit);
        return all.filter(({ transitionId }) => transitionId < afterTransition).slice(0, limit);
      },
    };
    const api = createApi({ ...content, store });
    const sizes: number[] = [];
    const ids: unknown[] = [];
    let after = '';
    while (ids.length < all.length) {
      const answer = await api.request(`/failures?limit=1000${after}`);
      const text = await answer.text();
      const { data, next_cursor } = JSON.parse(text) as Page;
      sizes.push(text.length);
      ids.push(...data.map((row) => row['transition_id']));
      if (next_cursor === null) break;
      after = `&cursor=${next_cursor}`;
    }

    expect(ids).toEqual(all.map(({ transitionId }) => transitionId));
    expect(Math.max(...sizes)).toBeLessThan(1_100_000);
    expect(Math.max(...asked)).toBeLessThanOrEqual(100);
    expect(sizes.length).toBeLessThan(10);
  });

  it('has at least one row, however long the row is', async () => {
    const { content } = await startApi();
    const rows = failures(2, 'x'.repeat(3_000_000));
    const store = { ...content.store, failures: async () => rows };
    const api = createApi({ ...content, store });

    const { data, next_cursor } = (await (await api.request('/failures')).json()) as Page;

    expect(data).toMatchObject([{ transition_id: 2 }]);
    expect(next_cursor).not.toBeNull();
  });
});

describe('a bad request', () => {
  it.each([
    ['/prompts?status=PAUSED', 'status must be one of PENDING, RUNNING'],
    ['/prompts?status=', 'status must be one of'],
    ['/prompts?limit=0', 'limit must be a whole number from 1 to 1000'],
    ['/prompts?limit=0&status=x', 'status must be one of PENDING, RUNNING, COMPLETED, FAILED'],
    ['/prompts?limit=0&status=x', '; limit must be'],
    ['/transitions?cursor=!', 'cursor must be the next_cursor'],
    ['/prompts?cursor=WzEsInAiLCJhXHUwMDAwIl0', 'cursor must be the next_cursor'],
    ['/failures?project=', 'project must not be empty'],
    ['/failures?cause=other', 'cause must be 16 hexadecimal digits'],
    ['/causes?since=24', 'since must be a duration such as 24h, or a time such as 2026-11-29'],
    [
      '/causes?cursor=MQ',
      'unknown parameter "cursor": this path takes project, experiment, dataset, metric, since, limit',
    ],
    ['/prompts?project=p&project=p', 'project is given more than once'],
    [
      '/prompts?projet=p',
      'unknown parameter "projet": this path takes project, status, experiment, dataset, metric, limit, cursor',
    ],
    ['/prompts/p/a?project=p', 'unknown parameter "project": this path takes no parameters'],
    ['/events?after=5', 'after must be the id of an event, such as t0.f0'],
    ['/events?type=reset', 'type must be one of transition, failure, experiment, poll'],
  ])('to %s is answered 400 with "%s"', async (path, says) => {
    const { get } = await setUp();

    const { status, body } = await get(path);

    expect(status).toBe(400);
    expect(body.error).toContain(says);
  });

  it.each(['/prompts', '/events'])('to %s for an unknown project is answered 404', async (path) => {
    const { get } = await setUp();

    const { status, body } = await get(`${path}?project=nobody`);

    expect(status).toBe(404);
    expect(body.error).toBe('unknown project "nobody"');
  });
});

describe('an ETag', () => {
  it('is strong, and a matching If-None-Match is answered 304', async () => {
    const path = '/transitions?limit=2';
    const { api } = await setUp();
    const first = await api.request(path);
    const etag = first.headers.get('etag') ?? '';

    const again = await api.request(path, { headers: { 'if-none-match': etag } });
    const others = await api.request(path, { headers: { 'if-none-match': `"x", W/${etag}` } });
    const wrong = await api.request(path, { headers: { 'if-none-match': '"x"' } });

    expect(etag).toMatch(/^"[0-9a-f]{40}"$/);
    expect([again.status, await again.text(), others.status]).toEqual([304, '', 304]);
    expect(again.headers.get('etag')).toBe(etag);
    expect(again.headers.get('cache-control')).toBe('no-cache');
    expect([wrong.status, await wrong.text()]).toEqual([200, await first.text()]);
  });

  it('changes with the content of the response', async () => {
    const { api, poll } = await setUp();
    const etag = (await api.request('/transitions')).headers.get('etag') ?? '';
    const ask = () => api.request('/transitions', { headers: { 'if-none-match': etag } });

    expect((await ask()).status).toBe(304);
    await poll('p', { running: 'COMPLETED' });
    expect((await ask()).status).toBe(200);
  });

  it('is the same for HEAD', async () => {
    const { api } = await setUp();
    const get = await api.request('/prompts');

    const head = await api.request('/prompts', { method: 'HEAD' });

    expect([head.status, await head.text()]).toEqual([200, '']);
    expect(head.headers.get('etag')).toBe(get.headers.get('etag'));
    expect(head.headers.get('content-type')).toBe(get.headers.get('content-type'));
  });

  it('is not sent for a bad request, even with If-None-Match: *', async () => {
    const { api } = await setUp();

    const answer = await api.request('/prompts?limit=0', { headers: { 'if-none-match': '*' } });

    expect(answer.status).toBe(400);
    expect(answer.headers.get('etag')).toBeNull();
  });
});

it.each(['/failures', '/events'])(
  '%s returns 503 without the internal reason while the store cannot be read',
  async (path) => {
    const { content } = await setUp();
    const unreadable = () => Promise.reject(new StoreError('corrupt', 'page 7'));
    const api = createApi({
      ...content,
      store: { ...content.store, failures: unreadable },
      feed: new EventFeed({ events: unreadable }),
    });

    const answer = await api.request(path);

    expect(answer.status).toBe(503);
    expect(await answer.json()).toEqual({ error: 'the store cannot be read at the moment' });
  },
);
