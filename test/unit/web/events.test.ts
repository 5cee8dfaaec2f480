import { setImmediate } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { StoreError } from '../../../src/monitor/errors.ts';
import type { FinishedPoll } from '../../../src/monitor/events.ts';
import { NEVER_POLLED } from '../../../src/monitor/poll-health.ts';
import type { EventPosition, RecordedEvents } from '../../../src/monitor/ports/store.ts';
import { createApi } from '../../../src/web/api/api.ts';
import { createEventFeed } from '../../../src/web/events/feed.ts';
import { createNews } from '../../../src/web/events/news.ts';
import type { EventPage } from '../../../src/web/events/page.ts';
import { openApiDocument } from '../../../src/web/api/openapi.ts';
import { PATIENCE } from '../../support/evalwatch.ts';
import { readEvents, take } from '../../support/event-stream.ts';
import { settle as settlePending } from '../../support/failures.ts';
import { readOpenApi } from '../../support/openapi.ts';
import { startApi } from './api/api-under-test.ts';

const document = readOpenApi(openApiDocument());

/** Sets up an API whose projects p and q have each had their baseline: two RUNNING prompts. */
async function setUp() {
  const started = await startApi();
  const { api, store, poll } = started;
  await poll('p', { a: 'RUNNING', b: 'RUNNING' });
  await poll('q', { c: 'RUNNING', d: 'RUNNING' });

  async function open(query = '', lastEventId?: string) {
    const headers = lastEventId === undefined ? {} : { 'last-event-id': lastEventId };
    const answer = await api.request(`/events${query}`, { headers });
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
    expect(answer.headers.get('x-accel-buffering')).toBe('no');
    const ids: string[] = [];
    const events = readEvents(answer.body, (id) => ids.push(id));
    return { events, ids };
  }

  /** Returns every recorded event. */
  async function all(query = '') {
    const count = (await store.transitions({})).length + (await store.failures({})).length;
    const { events } = await open(`?after=t0.f0${query}`);
    return await take(events, count);
  }

  const settle = async (transitionId: number) =>
    await settlePending(store, transitionId, { reason: 'not_found' }, 1);
  return { ...started, open, all, settle };
}

describe('the event stream', () => {
  it('sends transitions, settled failures and polls with their documented fields', async () => {
    const { open, poll, settle, request } = await setUp();
    const { events, ids } = await open();
    const first = events.next();

    await poll('p', { a: 'FAILED', b: 'COMPLETED' });
    await settle(1);

    const moves = [(await first).value, ...(await take(events, 1))];
    // The poll is emitted at once, and may come before the failure is settled.
    const others = (await take(events, 2)).toSorted((one, other) =>
      one.type.localeCompare(other.type),
    );
    const received = [...moves, ...others];
    expect(ids[0]).toBe('t0.f0');
    expect(received).toMatchObject([
      { type: 'transition', lastEventId: 't1.f0', data: { prompt_id: 'a', to: 'FAILED' } },
      { type: 'transition', lastEventId: 't2.f0', data: { prompt_id: 'b', to: 'COMPLETED' } },
      { type: 'failure', lastEventId: 't2.f1', data: { transition_id: 1, reason: 'not_found' } },
      { type: 'poll', data: { project: 'p', ok: true, transitions: 2, changed: true } },
    ]);
    const rows = async (path: string) =>
      ((await (await request(path)).json()) as { data: object[] }).data.toReversed();
    const of = (type: string) =>
      received.flatMap((event) => (event?.type === type ? [event.data] : []));
    expect(of('transition')).toEqual(await rows('/transitions'));
    expect(of('failure')).toEqual(await rows('/failures'));
    expect(document.faultsOf('Poll', of('poll')[0])).toEqual([]);
  });

  it('starts with new events if the request names no start position', async () => {
    const { open, poll } = await setUp();
    await poll('p', { a: 'COMPLETED', b: 'RUNNING' });
    const { events, ids } = await open();
    const next = events.next();
    await poll('q', { c: 'COMPLETED', d: 'RUNNING' });
    expect(await next).toMatchObject({ value: { lastEventId: 't2.f0', data: { prompt_id: 'c' } } });
    expect(ids[0]).toBe('t1.f0');
  });

  it('resumes after any Last-Event-ID with exactly the events that follow', async () => {
    const { all, open, poll, settle } = await setUp();
    await poll('p', { a: 'FAILED', b: 'FAILED' });
    await settle(2);
    await poll('q', { c: 'FAILED', d: 'COMPLETED' });
    await settle(3);
    await settle(1);
    const whole = await all();
    expect(whole.map(({ lastEventId }) => lastEventId)).toEqual([
      't1.f0',
      't2.f0',
      't3.f0',
      't4.f0',
      't4.f1',
      't4.f2',
      't4.f3',
    ]);
    for (const [index, { lastEventId }] of whole.entries()) {
      const rest = whole.slice(index + 1);
      const { events } = await open('?after=t0.f0', lastEventId);
      expect(await take(events, rest.length)).toEqual(rest);
    }
  });

  it.each([
    ['project=q', ['c', 'd']],
    ['type=failure', ['a']],
    ['type=transition&project=p', ['a']],
  ])('sends only the events that match %s', async (query, ids) => {
    const { open, poll, settle } = await setUp();
    await poll('p', { a: 'FAILED', b: 'RUNNING' });
    await poll('q', { c: 'COMPLETED', d: 'COMPLETED' });
    await settle(1);
    const { events } = await open(`?after=t0.f0&${query}`);
    const received = await take(events, ids.length);
    expect(received.map(({ data }) => data['prompt_id'])).toEqual(ids);
  });

  it('sends only polls that finish after it was opened, with the reason of a failed one', async () => {
    const { open, poll } = await setUp();
    const { events } = await open('?after=t0.f0&type=poll&project=p');
    const first = events.next();
    await poll('q');
    await poll('p');
    expect(await first).toMatchObject({
      value: { type: 'poll', data: { project: 'p', ok: false, reason: 'timeout', prompts: null } },
    });
  });

  it('keeps the last 500 polls', () => {
    const feed = createEventFeed(
      { events: () => Promise.reject(new Error('not asked for')) },
      systemClock,
    );
    for (let n = 1; n <= 501; n += 1) feed.observe(finishedPoll(`project ${n}`));

    const { events, count } = feed.polls(0);

    expect(count).toBe(501);
    expect(events.map(({ project }) => project)).toEqual(
      Array.from({ length: 500 }, (_, n) => `project ${n + 2}`),
    );
  });

  it('sends hundreds of events, each once and in order, and failures after their transitions', async () => {
    const { all, poll, store } = await setUp();
    const many = (status: string) =>
      Object.fromEntries(Array.from({ length: 450 }, (_, n) => [`m${n}`, status]));
    await poll('p', many('RUNNING'));
    await poll('p', many('FAILED'));
    const failures = (await store.pendingFailures({ limitPerProject: 450 })).toReversed();
    const errorInfo = { error_id: 'E', error_msg: 'm'.repeat(1000) };
    for (const failure of failures) {
      await store.settleFailure(failure, { errorInfo, errorMsgTruncated: false }, 1);
    }
    const received = await all();
    const idsOf = (type: string) =>
      received.filter((event) => event.type === type).map(({ data }) => data['transition_id']);
    expect(idsOf('transition')).toEqual(Array.from({ length: 900 }, (_, n) => n + 1));
    expect(idsOf('failure')).toEqual(failures.map(({ transitionId }) => transitionId));
    const early = received.filter(
      ({ type, data }, index) =>
        type === 'failure' &&
        !received
          .slice(0, index)
          .some((event) => event.data['transition_id'] === data['transition_id']),
    );
    expect(early).toEqual([]);
  });

  describe('reset event', () => {
    it('is sent if retention has deleted events after the start position', async () => {
      const { open, poll, store, clock, settle } = await setUp();
      await poll('p', { a: 'FAILED', b: 'RUNNING' });
      await settle(1);
      await store.prune({ before: clock.now() + 1, firstDay: 0 });
      await poll('p', { a: 'FAILED', b: 'COMPLETED' });
      const { events } = await open('?after=t0.f0');
      const received = await take(events, 2);
      expect(received).toMatchObject([
        { type: 'reset', data: { reason: 'retention' } },
        { type: 'transition', lastEventId: 't2.f0', data: { prompt_id: 'b' } },
      ]);
      expect(document.faultsOf('Reset', received[0]?.data)).toEqual([]);
    });

    it('is sent if retention has deleted every event', async () => {
      const { open, poll, store, clock } = await setUp();
      await poll('p', { a: 'COMPLETED', b: 'RUNNING' });
      await store.prune({ before: clock.now() + 1, firstDay: 0 });
      const { events } = await open('?after=t0.f0');
      expect(await take(events, 1)).toMatchObject([{ type: 'reset', lastEventId: 't1.f0' }]);
      const next = events.next();
      await poll('p', { a: 'RUNNING', b: 'RUNNING' });
      expect(await next).toMatchObject({ value: { type: 'transition', lastEventId: 't2.f0' } });
    });

    it.each(['t9.f0', 't0.f9', 't999999999999999.f0'])(
      'is sent if the store never had the event id %s',
      async (id) => {
        const { open, poll } = await setUp();
        await poll('p', { a: 'COMPLETED', b: 'RUNNING' });
        const { events } = await open('', id);
        expect(await take(events, 1)).toMatchObject([
          { type: 'reset', lastEventId: 't1.f0', data: { reason: 'unknown_id' } },
        ]);
      },
    );

    it('is not sent if no event is missing', async () => {
      const { open, poll, store, clock } = await setUp();
      await poll('p', { a: 'COMPLETED', b: 'RUNNING' });
      await store.prune({ before: clock.now() + 1, firstDay: 0 });
      const { events } = await open('', 't1.f0');
      const next = events.next();
      await poll('p', { a: 'RUNNING', b: 'RUNNING' });
      expect(await next).toMatchObject({ value: { type: 'transition', lastEventId: 't2.f0' } });
    });
  });

  it.each(['5', 't1', 't1.f', 't-1.f0', `t${'9'.repeat(16)}.f0`])(
    'rejects the Last-Event-ID %j with 400',
    async (id) => {
      const { api } = await setUp();
      const answer = await api.request('/events', { headers: { 'last-event-id': id } });
      expect(answer.status).toBe(400);
      expect(await document.faultsOfAnswer('/events', answer)).toEqual([]);
    },
  );

  it('answers HEAD with headers only', async () => {
    const { api } = await setUp();
    const answer = await api.request('/events', { method: 'HEAD' });
    expect([answer.status, answer.body]).toEqual([200, null]);
    expect(answer.headers.get('content-type')).toBe('text/event-stream');
  });

  it('sends a comment every 15 s, with the position after events that its filter has skipped', async () => {
    const { content, poll } = await setUp();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const api = createApi({ ...content, clock: systemClock });
    const answer = await api.request('/events?project=q');
    const isWaiting = async () => {
      while (vi.getTimerCount() === 0) await setImmediate();
    };
    const reader = (answer.body ?? new ReadableStream()).getReader();
    const read = async () => new TextDecoder().decode((await reader.read()).value as Uint8Array);
    expect(await read()).toBe('retry: 2000\nid: t0.f0\n\n');
    const first = read();
    await isWaiting();
    await vi.advanceTimersByTimeAsync(14_000);
    await poll('p', { a: 'COMPLETED', b: 'RUNNING' });
    await vi.advanceTimersByTimeAsync(100);
    await isWaiting();
    await vi.advanceTimersByTimeAsync(1000);
    expect(await first).toBe(': still here\nid: t1.f0\n\n');
    const second = read();
    await isWaiting();
    await vi.advanceTimersByTimeAsync(15_000);
    expect(await second).toBe(': still here\n\n');
    const third = read();
    await isWaiting();
    await reader.cancel();
    await third;
    expect(vi.getTimerCount()).toBe(0);
  });

  it('sends a comment at once if 15 s are over by the time the store is read', async () => {
    const { content } = await setUp();
    const waits: number[] = [];
    const waitForNews: typeof content.feed.waitForNews = (seen, ms, gone) => {
      waits.push(ms);
      return content.feed.waitForNews(seen, ms, gone);
    };
    let now = 0;
    const clock = { ...systemClock, monotonic: () => now };
    const read: typeof content.feed.read = (after, reader) => {
      now += 16_000;
      return content.feed.read(after, reader);
    };
    const api = createApi({ ...content, clock, feed: { ...content.feed, read, waitForNews } });
    const reader = ((await api.request('/events')).body ?? new ReadableStream()).getReader();
    await reader.read();
    const comment = await reader.read();
    expect(new TextDecoder().decode(comment.value as Uint8Array)).toBe(': still here\n\n');
    // Node warns on stderr about a negative time.
    expect(waits).toEqual([0]);
    await reader.cancel();
  });

  it('continues when the store can be read again', async () => {
    const { content, poll } = await setUp();
    let broken = true;
    const read: typeof content.feed.read = async (after, reader) => {
      if (broken) throw new StoreError('io', 'no disk');
      return await content.feed.read(after, reader);
    };
    const api = createApi({ ...content, feed: { ...content.feed, read } });
    const answer = await api.request('/events');
    const events = readEvents(answer.body);
    const first = events.next();
    await poll('p', { a: 'COMPLETED', b: 'RUNNING' });
    expect(await first).toMatchObject({ value: { type: 'poll' } });
    broken = false;
    const second = events.next();
    await poll('p', { a: 'COMPLETED', b: 'RUNNING' });
    expect(await second).toMatchObject({ value: { type: 'transition', lastEventId: 't1.f0' } });
  });

  it('reads the store fewer than 5 times for 50 clients at the same position', async () => {
    const { content, poll } = await setUp();
    const events = vi.spyOn(content.store, 'events');
    const news = vi.spyOn(content.feed, 'waitForNews');
    const api = createApi(content);
    const answers = await Promise.all(
      Array.from({ length: 50 }, async () => await api.request('/events')),
    );
    const streams = answers.map(({ body }) => readEvents(body));
    const firsts = streams.map((stream) => stream.next());
    await vi.waitFor(() => expect(news).toHaveBeenCalledTimes(50), PATIENCE);
    const before = events.mock.calls.length;

    await poll('p', { a: 'COMPLETED', b: 'RUNNING' });
    await Promise.all(firsts);

    expect(events.mock.calls.length - before).toBeLessThan(5);
  });

  it('is sent in chunks of bounded size, and reads the store for one client at a time', async () => {
    const { content } = await startApi();
    const { store, sent, mostParallel } = storeOfFailures(100, 8000);
    const feed = createEventFeed(store, systemClock);
    const api = createApi({ ...content, feed });
    const answers = await Promise.all(
      Array.from({ length: 10 }, async (_, n) => await api.request(`/events?after=t0.f${n}`)),
    );
    const received = await Promise.all(
      answers.map(async ({ body }, n) => {
        const pieces = await piecesOf(body, 100 - n);
        return {
          longest: Math.max(...pieces.map((piece) => piece.length)),
          ids: pieces
            .join('')
            .match(/(?<=^id: t100\.f)\d+/gm)
            ?.map(Number),
        };
      }),
    );

    expect(mostParallel()).toBe(1);
    expect(Math.max(...received.map(({ longest }) => longest))).toBeLessThan(42_000);
    for (const [n, { ids }] of received.entries()) {
      expect(ids?.filter((id) => id > n)).toEqual(sent.slice(n));
    }
  });

  it('limits reads of clients that catch up to 1/10 of the time, and reads new events at once', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const end = { transition: 0, settlement: 1_000_000 };
    let reads = 0;
    const events = async (): Promise<RecordedEvents> => {
      reads += 1;
      await new Promise((resolve) => setTimeout(resolve, 50));
      return { transitions: [], settled: [], end };
    };
    const feed = createEventFeed({ events }, systemClock);
    const isOver = new AbortController();
    let place = 0;
    const catchUp = async (client: string) => {
      while (!isOver.signal.aborted) {
        // Each read has its own position, because readers at the same position share a read.
        const after = { transition: 0, settlement: (place += 1) };
        await feed.read(after, { client, isBehind: true, gone: isOver.signal });
      }
    };
    const readers = Promise.all(Array.from({ length: 20 }, (_, n) => catchUp(`192.0.2.${n}`)));
    await vi.advanceTimersByTimeAsync(10_000);
    const timeRead = reads * 50;
    const live = vi.fn<(page: EventPage) => void>();
    const reading = feed.read(end, { client: '192.0.2.0', isBehind: false }).then(live);
    await vi.advanceTimersByTimeAsync(50);

    expect(live).toHaveBeenCalledOnce();
    // A tenth of the time, the burst after the rest, and a read that is under way.
    expect(timeRead).toBeLessThanOrEqual(1000 + 200 + 50);
    expect(timeRead).toBeGreaterThanOrEqual(1000);
    isOver.abort();
    await vi.runAllTimersAsync();
    await Promise.all([readers, reading]);
  });

  it('sends new events at once while other clients catch up', async () => {
    const { content } = await startApi();
    const { store, end } = storeOfFailures(2000, 8000);
    const catchingUp = vi.fn<typeof store.events>(() => new Promise(() => {}));
    // A read of a client that catches up never ends, so nobody behind it gets a turn.
    const events: typeof store.events = (after, limit) =>
      limit > 0 && after.settlement === 0 ? catchingUp(after, limit) : store.events(after, limit);
    const feed = createEventFeed({ events }, systemClock);
    const api = createApi({ ...content, feed });
    const { body } = await api.request('/events');
    const live = readEvents(body);
    const first = live.next();
    const behind = await Promise.all(
      Array.from({ length: 20 }, async () => await api.request('/events?after=t0.f0')),
    );
    const readers = behind.map((answer) => (answer.body ?? new ReadableStream()).getReader());
    for (const reader of readers) void reader.read().then(() => reader.read());
    await vi.waitFor(() => expect(catchingUp).toHaveBeenCalled(), PATIENCE);

    end.settlement += 1;
    feed.observe({ type: 'store.committed', durationMs: 1 });

    expect(await first).toMatchObject({ value: { type: 'failure', lastEventId: 't100.f2001' } });
    await Promise.all(readers.map((reader) => reader.cancel()));
  });
});

function finishedPoll(project: string): FinishedPoll {
  return {
    type: 'poll.finished',
    isStored: true,
    project,
    durationMs: 1,
    health: NEVER_POLLED,
    failuresBefore: 0,
    failure: undefined,
    unchanged: false,
    prompts: 0,
    transitions: 0,
    changed: false,
  };
}

/** Creates a store of `end.settlement` failures with messages of this length that counts parallel reads. */
function storeOfFailures(count: number, length: number) {
  const end = { transition: 100, settlement: count };
  const message = 'x'.repeat(length);
  let parallel = 0;
  let most = 0;
  const rowOf = (settlementId: number): RecordedEvents['settled'][number] => ({
    settlementId,
    transitionId: 1,
    at: 0,
    project: 'p',
    promptId: 'a',
    promptName: undefined,
    settlement: { errorInfo: { error_id: 'E', error_msg: message }, errorMsgTruncated: false },
    cause: '0123456789abcdef',
  });
  return {
    end,
    sent: Array.from({ length: count }, (_, n) => n + 1),
    mostParallel: () => most,
    store: {
      events: async (after: EventPosition, limit: number): Promise<RecordedEvents> => {
        if (limit === 0) return { transitions: [], settled: [], end: { ...end } };
        parallel += 1;
        most = Math.max(most, parallel);
        await setImmediate();
        parallel -= 1;
        const left = Math.min(limit, end.settlement - after.settlement);
        const settled = Array.from({ length: left }, (_, n) => rowOf(after.settlement + n + 1));
        return { transitions: [], settled, end: { ...end } };
      },
    },
  };
}

/** Returns the pieces of the first `count` events. */
async function piecesOf(
  body: ReadableStream<Uint8Array> | null,
  count: number,
): Promise<readonly string[]> {
  const pieces: string[] = [];
  let events = 0;
  for await (const piece of (body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
    pieces.push(piece);
    events += piece.match(/^event: failure$/gm)?.length ?? 0;
    if (events >= count) break;
  }
  return pieces;
}

it('news that are announced while a client reads wake it when it waits', async () => {
  const news = createNews({ intervalMs: undefined, onAnnouncement: () => {} });
  const seen = news.version();
  news.announce();
  expect(await news.wait(seen, 200_000, new AbortController().signal)).toBe(true);
});
