import { setTimeout } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import type { Clock } from '../../../src/monitor/ports/clock.ts';
import type { ListingAnswer, ListingTable } from '../../../src/monitor/ports/service.ts';
import {
  answering,
  connect,
  failureOf,
  inTurn,
  KEY,
  listOptions,
  ofType,
  RUNNING,
  serve,
} from './harness.ts';

/** Bytes of records that wait for the store, above the limit. */
const TOO_MUCH = 40 * 1024 * 1024;
/** A large listing, 6 MB. */
const LARGE = JSON.stringify(
  Array.from({ length: 6000 }, (_, index) => ({
    id: `p${index}`,
    status: 'FAILED',
    name: 'n'.repeat(1000),
  })),
);
const BODY = JSON.stringify([{ id: 'p1', status: 'FAILED', name: 'one' }]);
const DEEP = `{"detail":${'['.repeat(90_000)}${']'.repeat(90_000)}}`;

function tableOf(answer: ListingAnswer): ListingTable {
  if (answer.unchanged) throw new Error('it was unchanged');
  return answer.table;
}

describe('a request', () => {
  it('sends the API key, the accepted formats and the user agent, and escapes the project id', async () => {
    const { url, requests } = await serve(answering(200, BODY));
    const { service } = connect({ baseUrl: `${url}/some/base` });
    await service.list('a project/ü', 'prompt', listOptions());
    expect(requests[0]?.method).toBe('GET');
    expect(requests[0]?.url).toBe('/some/base/v2/projects/a%20project%2F%C3%BC/prompts/');
    expect(requests[0]?.headers).toMatchObject({
      'x-api-key': KEY,
      accept: 'application/json',
      'accept-encoding': 'gzip',
      'user-agent': 'evalwatch/1.2.3',
    });
    expect(requests[0]?.headers).not.toHaveProperty('if-none-match');
  });

  it.each([
    ['/v2/projects/p/datasets/', 'list_datasets', 'dataset'],
    ['/v2/projects/p/prompts/', 'list_prompts', 'prompt'],
  ] as const)('to %s emits events for the endpoint %s', async (path, endpoint, kind) => {
    const { url, requests } = await serve(answering(200, BODY));
    const { service, events } = connect({ baseUrl: url });
    let started = 0;
    await service.list('p', kind, listOptions({ onRequest: () => (started += 1) }));
    expect(requests[0]?.url).toBe(path);
    expect(started).toBe(1);
    expect(events).toEqual([
      { type: 'api.responded', endpoint, statusCode: 200 },
      {
        type: 'api.request_finished',
        endpoint,
        durationMs: expect.any(Number) as number,
        bytes: BODY.length,
        failure: undefined,
      },
    ]);
  });

  it('for a single prompt escapes its id into one path segment', async () => {
    const { url, requests } = await serve(answering(200, '{"error_info": {"error_id": "E"}}'));
    const { service, events } = connect({ baseUrl: url });
    const info = await service.getErrorInfo('p', '../%2e/?#', RUNNING);
    expect(info).toEqual({
      errorInfo: { error_id: 'E', error_msg: null },
      errorMsgTruncated: false,
    });
    expect(requests[0]?.url).toBe('/v2/prompts/..%2F%252e%2F%3F%23/');
    expect(ofType(events, 'api.responded')).toMatchObject([{ endpoint: 'get_prompt' }]);
  });

  it.each(['.', '..'])('is not sent for a prompt with the id %s', async (id) => {
    const { url, requests } = await serve(answering(200, '{}'));
    const { service } = connect({ baseUrl: url });
    expect((await failureOf(service.getErrorInfo('p', id, RUNNING))).reason).toBe(
      'invalid_response',
    );
    expect(requests).toEqual([]);
  });

  it('reuses connections, even after an error response with a small body', async () => {
    const { url, server } = await serve(inTurn(answering(404, 'no'), answering(200, BODY)));
    let connections = 0;
    server.on('connection', () => (connections += 1));
    const { service } = connect({ baseUrl: url });
    await failureOf(service.list('p', 'prompt', listOptions()));
    for (let count = 0; count < 10; count += 1) await service.list('p', 'prompt', listOptions());
    // A connection rests for a moment after a response, and another one is used.
    expect(connections).toBeLessThanOrEqual(2);
  });
});

describe('a listing', () => {
  it('is returned complete, with its ETag', async () => {
    const { url } = await serve(answering(200, BODY, { etag: '"v1"' }));
    const { service } = connect({ baseUrl: url });
    const answer = await service.list('p', 'prompt', listOptions());
    expect(answer).toMatchObject({
      unchanged: false,
      listing: {
        complete: true,
        records: new Map([['p1', { id: 'p1', status: 'FAILED', name: 'one' }]]),
      },
      etag: '"v1"',
    });
  });

  it('is unchanged when its bytes are the same, even under another ETag', async () => {
    const { url } = await serve(
      inTurn(answering(200, BODY, { etag: '"v1"' }), answering(200, BODY, { etag: '"v2"' })),
    );
    const { service } = connect({ baseUrl: url });
    const previous = tableOf(await service.list('p', 'prompt', listOptions()));
    expect(await service.list('p', 'prompt', listOptions({ previous }))).toEqual({
      unchanged: true,
      full: true,
      etag: '"v2"',
    });
  });

  it('waits without timing out while too much waits for the store, unless it is unchanged', async () => {
    const { url } = await serve(answering(200, LARGE));
    const deadlines = { begun: 0, inForce: 0 };
    const clock: Clock = {
      ...systemClock,
      timeout: (ms, run) => {
        deadlines.begun += 1;
        deadlines.inForce += 1;
        const timer = systemClock.timeout(ms, run);
        const cancel = () => {
          deadlines.inForce -= 1;
          timer.cancel();
        };
        return { ...timer, cancel };
      },
    };
    const { service } = connect({
      baseUrl: url,
      clock,
      timeoutMs: 100_000,
      maxResponseBytes: LARGE.length,
    });
    const previous = tableOf(await service.list('p', 'prompt', listOptions()));
    const stored = service.storing(TOO_MUCH);
    const order: string[] = [];
    const reading = service.list('q', 'prompt', listOptions()).then((answer) => {
      order.push('read');
      return answer;
    });
    // Each turn of the event loop that other work has stops the deadline for a moment.
    const isHeld = async () => {
      const { begun } = deadlines;
      await setTimeout(100);
      expect(deadlines).toEqual({ begun, inForce: 0 });
    };
    await vi.waitFor(isHeld, { timeout: 100_000 });
    expect(await service.list('p', 'prompt', listOptions({ previous }))).toMatchObject({
      unchanged: true,
    });
    order.push('stored');
    stored[Symbol.dispose]();
    const answer = await reading;
    expect(order).toEqual(['stored', 'read']);
    if (answer.unchanged) throw new Error('it is the first one');
    expect(answer.recordBytes).toBeGreaterThan(LARGE.length);
  });

  it('of many new items is read in the end, however few slots there are for large ones', async () => {
    const { url } = await serve(answering(200, LARGE));
    const { service } = connect({
      baseUrl: url,
      maxConcurrency: 2,
      maxResponseBytes: LARGE.length,
      timeoutMs: 100_000,
    });
    const poll = async (project: string) => {
      // As of a poll with two listings, which waits for the store when both were read.
      const kinds = ['prompt', 'dataset'] as const;
      const answers = await Promise.all(
        kinds.map((kind) => service.list(project, kind, listOptions())),
      );
      const sizes = answers.map((answer) => (answer.unchanged ? 0 : answer.recordBytes));
      using _ = service.storing(sizes.reduce((sum, bytes) => sum + bytes, TOO_MUCH));
      await setTimeout(10);
      return sizes.every((bytes) => bytes > LARGE.length);
    };
    expect(await Promise.all(['a', 'b', 'c'].map(poll))).toEqual([true, true, true]);
  });

  it.each([
    ['while 16 MiB wait for the store', 1, TOO_MUCH],
    ['while hundreds of small polls do, each counted as 64 KiB', 257, 1000],
  ])('keeps its slot %s, so that no more listings are requested', async (_, polls, recordBytes) => {
    const { url, requests } = await serve(answering(200, BODY));
    const { service } = connect({ baseUrl: url, maxConcurrency: 2 });
    service.storing(0);
    const stored = Array.from({ length: polls }, () => service.storing(recordBytes));
    const listings = Array.from({ length: 6 }, (__, index) =>
      service.list(`p${index}`, 'prompt', listOptions()),
    );
    await vi.waitFor(() => expect(requests).toHaveLength(2), { timeout: 100_000 });
    await setTimeout(200);
    expect(requests).toHaveLength(2);
    stored[0]?.[Symbol.dispose]();
    await Promise.all(listings);
    expect(requests).toHaveLength(6);
  });

  describe('with a previous listing to compare', () => {
    const items = Array.from({ length: 20 }, (_, index) => ({
      id: `p${index}`,
      status: 'RUNNING',
    }));
    const changed = items.map((item) => (item.id === 'p7' ? { ...item, status: 'FAILED' } : item));
    const bodies = (...lists: readonly unknown[]) =>
      inTurn(...lists.map((list) => answering(200, JSON.stringify(list))));

    it('returns only the changed records and the ids that vanished', async () => {
      const { url } = await serve(bodies(items, changed.slice(1)));
      const { service } = connect({ baseUrl: url });
      const previous = tableOf(await service.list('p', 'prompt', listOptions()));
      const answer = await service.list('p', 'prompt', listOptions({ previous }));
      expect(answer).toMatchObject({
        vanished: ['p0'],
        listing: { records: new Map([['p7', { id: 'p7', status: 'FAILED' }]]), complete: true },
      });
    });

    it('returns the vanished ids, and no others, when items change their order', async () => {
      const added = { id: 'añadido', status: 'PENDING' };
      const moved = [...changed.slice(12), added, ...changed.slice(3, 11), ...changed.slice(0, 2)];
      const without = (...ids: readonly string[]) => moved.filter(({ id }) => !ids.includes(id));
      const { url } = await serve(bodies(items, moved, without('p12', 'añadido', 'p7', 'p1')));
      const { service } = connect({ baseUrl: url });
      let previous = tableOf(await service.list('p', 'prompt', listOptions()));
      const second = await service.list('p', 'prompt', listOptions({ previous }));
      expect(second).toMatchObject({ vanished: ['p2', 'p11'] });
      previous = tableOf(second);
      const third = await service.list('p', 'prompt', listOptions({ previous }));
      expect(third).toMatchObject({ vanished: ['p12', 'añadido', 'p7', 'p1'] });
    });

    it.each([
      ['is new throughout', items.map((item) => ({ ...item, status: 'FAILED' })), 20],
      ['shows an unusual item', [...items.slice(1), { id: 'p0', status: 'ODD' }], 1],
      ['shows an item without a status', [...items.slice(1), { id: 'p0' }], 0],
    ])(
      'returns only the differences, without another request, even if it %s',
      async (_, list, count) => {
        const { url, requests } = await serve(
          bodies(items, list, [...list, { id: 'q', status: 7 }]),
        );
        const { service } = connect({ baseUrl: url });
        const first = tableOf(await service.list('p', 'prompt', listOptions()));
        const answer = await service.list('p', 'prompt', listOptions({ previous: first }));
        expect(answer).toHaveProperty('vanished', []);
        expect(answer.unchanged ? 0 : answer.listing.records.size).toBe(count);
        const previous = tableOf(answer);
        const next = await service.list('p', 'prompt', listOptions({ previous }));
        // Unusual items are parsed again each time.
        const unusual = new Set(count === 0 ? ['p0', 'q'] : ['q']);
        expect(next).toMatchObject({ vanished: [], listing: { idsWithoutStatus: unusual } });
        expect(requests).toHaveLength(3);
      },
    );

    it('is read as a whole where no difference is asked for', async () => {
      const { url, requests } = await serve(bodies(items, changed));
      const { service } = connect({ baseUrl: url });
      const previous = tableOf(await service.list('p', 'prompt', listOptions()));
      const options = listOptions({ previous, allowDifference: false });
      const answer = await service.list('p', 'prompt', options);
      expect(answer).not.toHaveProperty('vanished');
      expect(answer.unchanged ? 0 : answer.listing.records.size).toBe(20);
      expect(requests).toHaveLength(2);
    });

    it('is read as a whole at once after the API key has changed', async () => {
      const { url, requests } = await serve(bodies(items, changed));
      let value = KEY;
      const { service } = connect({
        baseUrl: url,
        key: {
          env: 'TEST_KEY',
          get value() {
            return value;
          },
        },
      });
      const previous = tableOf(await service.list('p', 'prompt', listOptions()));
      value = 'another-key';
      const answer = await service.list('p', 'prompt', listOptions({ previous }));
      expect(answer).not.toHaveProperty('vanished');
      expect(requests).toHaveLength(2);
    });
  });

  it('is unchanged when a conditional request is answered with 304', async () => {
    const { url, requests } = await serve(
      inTurn(answering(200, BODY, { etag: 'W/"v1"' }), answering(304)),
    );
    const { service, events } = connect({ baseUrl: url });
    const previous = tableOf(await service.list('p', 'prompt', listOptions()));
    const answer = await service.list('p', 'prompt', listOptions({ previous, etag: 'W/"v1"' }));
    expect(answer).toEqual({ unchanged: true, full: false });
    expect(requests[1]?.headers['if-none-match']).toBe('W/"v1"');
    expect(ofType(events, 'api.request_finished')).toMatchObject([
      { failure: undefined },
      { failure: undefined, bytes: 0 },
    ]);
  });

  it('sends no ETag when it is given none, and rejects a 304 as an invalid response', async () => {
    const { url, requests } = await serve(
      inTurn(answering(200, BODY, { etag: '"v1"' }), answering(304)),
    );
    const { service, events } = connect({ baseUrl: url });
    const previous = tableOf(await service.list('p', 'prompt', listOptions()));
    const options = listOptions({ previous });
    const { reason, details } = await failureOf(service.list('p', 'prompt', options));
    expect(reason).toBe('invalid_response');
    expect(details.statusCode).toBe(304);
    expect(requests[1]?.headers).not.toHaveProperty('if-none-match');
    expect(ofType(events, 'api.request_finished')).toMatchObject([
      { failure: undefined },
      { failure: 'invalid_response' },
    ]);
  });

  it.each([
    ['far too long', `"${'x'.repeat(2000)}"`],
    ['not plain ASCII', '"é"'],
    ['empty', ''],
    ['given twice', ['"a"', '"b"']],
  ])('ignores an ETag that is %s', async (_, etag) => {
    const { url } = await serve(answering(200, BODY, { etag }));
    const { service } = connect({ baseUrl: url });
    const answer = await service.list('p', 'prompt', listOptions());
    expect(answer).toMatchObject({ unchanged: false, etag: undefined });
  });
});

describe('a failed request', () => {
  it.each([
    [201, 'invalid_response', 'invalid_response'],
    [300, 'redirect', 'redirect'],
    [308, 'redirect', 'redirect'],
    [400, 'client_error', undefined],
    [401, 'auth', undefined],
    [403, 'auth', undefined],
    [404, 'not_found', undefined],
    [408, 'client_error', undefined],
    [422, 'validation', undefined],
    [429, 'rate_limited', undefined],
    [500, 'server_error', undefined],
    [599, 'server_error', undefined],
    [999, 'invalid_response', 'invalid_response'],
  ])('with status %i has the reason %s', async (statusCode, expected, failure) => {
    const { url } = await serve(answering(statusCode, BODY));
    const { service, events } = connect({ baseUrl: url });
    for (const call of [
      service.list('p', 'prompt', listOptions()),
      service.getErrorInfo('p', 'p1', RUNNING),
    ]) {
      const { reason, details } = await failureOf(call);
      expect(reason).toBe(expected);
      expect(details.statusCode).toBe(statusCode);
    }
    expect(ofType(events, 'api.responded').map((event) => event.statusCode)).toEqual([
      statusCode,
      statusCode,
    ]);
    expect(ofType(events, 'api.request_finished').map((event) => event.failure)).toEqual([
      failure,
      failure,
    ]);
  });

  it('does not follow a redirect, and reports its location cut and with the API key redacted', async () => {
    const elsewhere = await serve(answering(200, BODY));
    const location = `${elsewhere.url}/?key=${encodeURIComponent(KEY)}&more=${'x'.repeat(2000)}`;
    const { url } = await serve(answering(302, '', { location }));
    const { service } = connect({ baseUrl: url });
    const { reason, details } = await failureOf(service.list('p', 'prompt', listOptions()));
    expect(reason).toBe('redirect');
    expect(details.location).toContain(`${elsewhere.url}/?key=[redacted]&more=xxx`);
    expect(details.location).toHaveLength(1024);
    expect(elsewhere.requests).toEqual([]);
  });

  it('with status 422 reports the detail of the body, redacted and then cut', async () => {
    const detail = [{ loc: ['path', 0], msg: `bad ${KEY}`, type: 'x'.repeat(300_000) }];
    const { url } = await serve(answering(422, JSON.stringify({ detail }, undefined, 2)));
    const { service } = connect({ baseUrl: url });
    const { details } = await failureOf(service.list('p', 'prompt', listOptions()));
    expect(details.detail).toMatch(/^\[\{"loc":\["path",0\],"msg":"bad \[redacted\]","type":"xxx/);
    expect(details.detail).toHaveLength(2048);
  });

  it.each([
    [401, '{"detail":"API key is not valid"}', 'API key is not valid'],
    [404, 'oops', 'oops'],
    [422, '[]', '[]'],
    [422, '{"error": {"code": 7}}', '{"error": {"code": 7}}'],
    [502, `<html>\r\n<h1>Bad Gateway</h1>\n  ${KEY}\n`, '<html> <h1>Bad Gateway</h1> [redacted]'],
    [500, 'x'.repeat(5000), 'x'.repeat(2048)],
    [422, DEEP, DEEP.slice(0, 2048)],
    [503, '', undefined],
    [503, ' \n', undefined],
    [500, Buffer.from([0xff, 0xfe, 0x00]), undefined],
    [422, JSON.stringify({ detail: 'x'.repeat(2_000_000) }), undefined],
  ])(
    'with status %i reports the text of the body if it is readable, case %#',
    async (statusCode, body, expected) => {
      const { url } = await serve(answering(statusCode, body));
      const { service } = connect({ baseUrl: url });
      const { details } = await failureOf(service.list('p', 'prompt', listOptions()));
      expect(details).toMatchObject({ statusCode, url: `${url}/v2/projects/p/prompts/` });
      expect(details.detail).toBe(expected);
    },
  );

  it('reports the requested URL with the API key redacted', async () => {
    const { url } = await serve(answering(404));
    const { service } = connect({ baseUrl: `${url}/gateway/${encodeURIComponent(KEY)}` });
    const { details } = await failureOf(service.list('a/b', 'dataset', listOptions()));
    expect(details.url).toBe(`${url}/gateway/[redacted]/v2/projects/a%2Fb/datasets/`);
    const unreachable = connect({ baseUrl: 'http://127.0.0.1:1' }).service;
    const failed = await failureOf(unreachable.list('p', 'prompt', listOptions()));
    expect(failed.details.url).toBe('http://127.0.0.1:1/v2/projects/p/prompts/');
    expect(failed.details.statusCode).toBeUndefined();
  });

  it('reports no URL if it was not sent because there is no API key', async () => {
    const { service } = connect({
      baseUrl: 'http://127.0.0.1:1',
      key: { env: 'NO', value: undefined },
    });
    const { reason, details } = await failureOf(service.list('p', 'prompt', listOptions()));
    expect({ reason, url: details.url }).toEqual({ reason: 'auth', url: undefined });
  });
});

describe('a failed attempt', () => {
  it('is not retried when onRequest throws, and the call rejects with that error', async () => {
    const { url, requests } = await serve(answering(503));
    const { service, events } = connect({ baseUrl: url, retries: 3 });
    const refusal = new Error('the project was removed');
    let started = 0;
    const onRequest = () => {
      started += 1;
      if (started > 1) throw refusal;
    };
    await expect(service.list('p', 'prompt', listOptions({ onRequest }))).rejects.toBe(refusal);
    expect(requests).toHaveLength(1);
    expect(started).toBe(2);
    expect(ofType(events, 'api.retry_sent')).toEqual([]);
  });

  it.each([408, 429, 500, 502, 503, 504])('is retried after status %i', async (statusCode) => {
    const { url, requests } = await serve(inTurn(answering(statusCode), answering(200, BODY)));
    const { service, events } = connect({ baseUrl: url, retries: 1 });
    let started = 0;
    const answer = await service.list(
      'p',
      'prompt',
      listOptions({ onRequest: () => (started += 1) }),
    );
    expect(answer.unchanged).toBe(false);
    expect(requests).toHaveLength(2);
    expect(started).toBe(2);
    expect(events.map(({ type }) => type)).toEqual([
      'api.responded',
      'api.request_finished',
      'api.retry_scheduled',
      'api.retry_sent',
      'api.responded',
      'api.request_finished',
    ]);
    expect(ofType(events, 'api.retry_scheduled')).toMatchObject([
      { project: 'p', endpoint: 'list_prompts', attempt: 1, delayMs: 250, statusCode },
    ]);
  });

  it('is retried as often as configured, and then the call rejects with the last error', async () => {
    const { url, requests } = await serve(inTurn(answering(500), answering(429)));
    const { service } = connect({ baseUrl: url, retries: 1 });
    expect((await failureOf(service.list('p', 'prompt', listOptions()))).reason).toBe(
      'rate_limited',
    );
    expect(requests).toHaveLength(2);
  });

  it.each([400, 401, 404, 422, 301, 204])('is not retried after status %i', async (statusCode) => {
    const { url, requests } = await serve(answering(statusCode));
    const { service } = connect({ baseUrl: url, retries: 3 });
    await failureOf(service.list('p', 'prompt', listOptions()));
    expect(requests).toHaveLength(1);
  });

  it('to read a single prompt is never retried', async () => {
    const { url, requests } = await serve(answering(503, '', { 'retry-after': '60' }));
    const { service } = connect({ baseUrl: url, retries: 3 });
    const { reason, details } = await failureOf(service.getErrorInfo('p', 'p1', RUNNING));
    expect(reason).toBe('server_error');
    expect(details.retryAfterMs).toBe(60_000);
    expect(requests).toHaveLength(1);
  });
});

describe('Retry-After', () => {
  it('of 1 s delays the retry within the same call by 1 s', async () => {
    const { url, requests } = await serve(
      inTurn(answering(429, '', { 'retry-after': '1' }), answering(200, BODY)),
    );
    const { service, events } = connect({ baseUrl: url, retries: 1 });
    await service.list('p', 'prompt', listOptions());
    expect(ofType(events, 'api.retry_scheduled')).toMatchObject([{ delayMs: 1000 }]);
    expect(requests).toHaveLength(2);
  });

  it.each([
    ['too long', 3, '30'],
    ['received with the last attempt', 0, '15'],
  ])(
    'that is %s fails the call, and every request with this key until it has passed',
    async (_, retries, header) => {
      const { url, requests } = await serve(
        inTurn(answering(503, 'busy', { 'retry-after': header }), answering(200, BODY)),
      );
      let now = 0;
      const clock = { ...systemClock, now: () => 0, monotonic: () => now };
      const key = (project: string) => ({ env: 'TEST_KEY', value: `${KEY} ${project[0]}` });
      const { service, events } = connect({ baseUrl: url, retries, clock, key });
      await failureOf(service.list('p', 'prompt', listOptions()));
      const retryAfterMs = Number(header) * 1000;
      now = retryAfterMs - 10_001;
      for (const call of [
        service.list('p', 'prompt', listOptions()),
        service.list('p2', 'dataset', listOptions()),
        service.getErrorInfo('p3', 'p1', RUNNING),
      ]) {
        const { reason, details } = await failureOf(call);
        expect(reason).toBe('server_error');
        expect(details).toEqual({ statusCode: 503, detail: 'busy', retryAfterMs: 10_001 });
      }
      expect(requests).toHaveLength(1);
      expect(ofType(events, 'api.retry_scheduled')).toEqual([]);
      await service.list('q', 'prompt', listOptions());
      now = retryAfterMs;
      await service.list('p2', 'prompt', listOptions());
      expect(requests).toHaveLength(3);
    },
  );

  it('holds a request that already waits for its turn', async () => {
    const { url, requests } = await serve(answering(429, '', { 'retry-after': '60' }));
    const { service } = connect({ baseUrl: url, maxConcurrency: 1 });
    const calls = ['p', 'q'].map((id) => failureOf(service.list(id, 'prompt', listOptions())));
    expect((await Promise.all(calls)).map(({ reason }) => reason)).toEqual([
      'rate_limited',
      'rate_limited',
    ]);
    expect(requests).toHaveLength(1);
  });

  it('is waited for within a call with this key once at most 10 s are left', async () => {
    const { url, requests } = await serve(
      inTurn(answering(429, '', { 'retry-after': '30' }), answering(200, BODY)),
    );
    let now = 0;
    const sleeps: number[] = [];
    const sleep = async (ms: number) => {
      sleeps.push(ms);
      now += ms;
    };
    const clock = { ...systemClock, monotonic: () => now, sleep };
    const { service } = connect({ baseUrl: url, retries: 1, clock });
    await failureOf(service.list('p', 'prompt', listOptions()));
    now = 20_000;
    await service.list('q', 'prompt', listOptions());
    expect(sleeps).toEqual([10_000]);
    expect(requests).toHaveLength(2);
  });

  it('of a 403 makes it a rate limit, for which the key is not read again', async () => {
    const { url, requests } = await serve(answering(403, '', { 'retry-after': '60' }));
    let reads = 0;
    const key = () => ({ env: 'TEST_KEY', value: `${KEY} ${(reads += 1)}` });
    const { service } = connect({ baseUrl: url, key });
    const { reason, details } = await failureOf(service.list('p', 'prompt', listOptions()));
    expect(reason).toBe('rate_limited');
    expect(details).toMatchObject({ statusCode: 403, retryAfterMs: 60_000 });
    expect([requests.length, reads]).toEqual([1, 1]);
  });

  it.each([
    ['500', 500, '60'],
    ['408', 408, '60'],
    ['429 that makes no sense', 429, 'tomorrow'],
  ])('of a %s is ignored', async (_, statusCode, header) => {
    const { url, requests } = await serve(
      inTurn(answering(statusCode, '', { 'retry-after': header }), answering(200, BODY)),
    );
    const { service } = connect({ baseUrl: url, retries: 1 });
    await service.list('p', 'prompt', listOptions());
    expect(requests).toHaveLength(2);
  });

  it('can be an HTTP date', async () => {
    const date = new Date(systemClock.now() + 60_000).toUTCString();
    const { url } = await serve(answering(429, '', { 'retry-after': date }));
    const { service } = connect({ baseUrl: url, retries: 3 });
    const { details } = await failureOf(service.list('p', 'prompt', listOptions()));
    expect(details.retryAfterMs).toBeGreaterThan(30_000);
    expect(details.retryAfterMs).toBeLessThanOrEqual(60_000);
  });
});

it.each([
  ['</p?page=2>; rel="next"', 1],
  ['</a>; rel=prev, </b>; rel=next; title="x"', 1],
  ['</b>; rel="last next"', 1],
  ['</a>; rel="prev"', 0],
  ['</next>; rel="nextish"', 0],
])('a Link of %s tells of further pages once: %i', async (link, times) => {
  const { url } = await serve(answering(200, '[]', { link }));
  const { service, events } = connect({ baseUrl: url });
  await service.list('p', 'prompt', listOptions());
  await service.list('p', 'prompt', listOptions());
  expect(ofType(events, 'listing.paged')).toHaveLength(times);
});
