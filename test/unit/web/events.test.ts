import { setImmediate } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { StoreError } from '../../../src/monitor/errors.ts';
import type { EventPosition, RecordedEvents } from '../../../src/monitor/ports/store.ts';
import { EventFeed } from '../../../src/web/events/feed.ts';
import { openApiDocument } from '../../../src/web/api/openapi.ts';
import { readEvents, take } from '../../support/event-stream.ts';
import { pollItems } from '../../support/experiments.ts';
import { settle as settlePending } from '../../support/failures.ts';
import { readOpenApi } from '../../support/openapi.ts';
import { createApi, startApi } from './api/api-under-test.ts';

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
    expect(ids[0]).toBe('t0.f0.x0');
    expect(received).toMatchObject([
      { type: 'transition', lastEventId: 't1.f0.x0', data: { prompt_id: 'a', to: 'FAILED' } },
      { type: 'transition', lastEventId: 't2.f0.x0', data: { prompt_id: 'b', to: 'COMPLETED' } },
      { type: 'failure', lastEventId: 't2.f1.x0', data: { transition_id: 1, reason: 'not_found' } },
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
    expect(await next).toMatchObject({
      value: { lastEventId: 't2.f0.x0', data: { prompt_id: 'c' } },
    });
    expect(ids[0]).toBe('t1.f0.x0');
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
      't1.f0.x0',
      't2.f0.x0',
      't3.f0.x0',
      't4.f0.x0',
      't4.f1.x0',
      't4.f2.x0',
      't4.f3.x0',
    ]);
    for (const [index, { lastEventId }] of whole.entries()) {
      const rest = whole.slice(index + 1);
      const { events } = await open('?after=t0.f0.x0', lastEventId);
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

  it('sends finishes of experiments after all moves, each once and from every position', async () => {
    const { open, store } = await setUp();
    const names = Array.from({ length: 120 }, (_, n) => `e${n}`);
    const all = (status: string) =>
      Object.fromEntries(names.map((name) => [name, [status, name] as const]));
    await pollItems(store, 'p', all('RUNNING'), 1000);
    for (const at of [2000, 3000]) await pollItems(store, 'p', all('FAILED'), at);
    const moves = (await store.transitions({})).length;
    const { events } = await open('?after=t0.f0');
    const received = await take(events, moves + names.length);
    expect(received.slice(0, moves).every(({ type }) => type === 'transition')).toBe(true);
    const finishes = received.slice(moves);
    expect(finishes.map(({ type, data }) => [type, data['experiment']])).toEqual(
      names.map((name) => ['experiment', name]),
    );
    expect(document.faultsOf('Finish', finishes[0]?.data)).toEqual([]);
    expect(finishes.at(-1)?.lastEventId).toBe(`t${moves}.f0.x120`);
    for (const index of [0, moves - 1, moves, moves + 70]) {
      const rest = received.slice(index + 1);
      const resumed = await open('', received[index]?.lastEventId);
      expect(await take(resumed.events, rest.length)).toEqual(rest);
    }
    const only = await open(`?after=t0.f0.x119&type=experiment`);
    expect(await take(only.events, 1)).toEqual(finishes.slice(-1));
  });

  it('sends a finish once its poll was committed, and a reset after deleted ones', async () => {
    const { open, store } = await setUp();
    const { events } = await open('?type=experiment');
    const first = events.next();
    for (const status of ['RUNNING', 'FAILED', 'FAILED']) {
      await pollItems(store, 'p', { a: [status, 'e'] }, 1000);
    }
    expect(await first).toMatchObject({
      value: { type: 'experiment', data: { finish_id: 1, experiment: 'e', project: 'p' } },
    });
    const { end } = await store.events({ transition: 0, settlement: 0, finish: 0 }, 0);
    await store.prune({ before: 2000, firstDay: 0 });
    const behind = await open('', `t${end.transition}.f0`);
    expect(await take(behind.events, 1)).toMatchObject([
      { type: 'reset', data: { reason: 'retention' } },
    ]);
    const beyond = await open('', `t0.f0.x2`);
    expect(await take(beyond.events, 1)).toMatchObject([
      { type: 'reset', data: { reason: 'unknown_id' } },
    ]);
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
        { type: 'transition', lastEventId: 't2.f0.x0', data: { prompt_id: 'b' } },
      ]);
      expect(document.faultsOf('Reset', received[0]?.data)).toEqual([]);
    });

    it.each(['t9.f0', 't0.f9', 't999999999999999.f0'])(
      'is sent if the store never had the event id %s',
      async (id) => {
        const { open, poll } = await setUp();
        await poll('p', { a: 'COMPLETED', b: 'RUNNING' });
        const { events } = await open('', id);
        expect(await take(events, 1)).toMatchObject([
          { type: 'reset', lastEventId: 't1.f0.x0', data: { reason: 'unknown_id' } },
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
      expect(await next).toMatchObject({ value: { type: 'transition', lastEventId: 't2.f0.x0' } });
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
    const { content, poll, observers } = await setUp();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const feed = new EventFeed(content.store);
    observers.push(feed.observe);
    const api = createApi({ ...content, feed, clock: systemClock });
    const answer = await api.request('/events?project=q');
    const isWaiting = async () => {
      while (vi.getTimerCount() === 0) await setImmediate();
    };
    const reader = (answer.body ?? new ReadableStream()).getReader();
    const read = async () => new TextDecoder().decode((await reader.read()).value as Uint8Array);
    expect(await read()).toBe('retry: 2000\nid: t0.f0.x0\n\n');
    const first = read();
    await isWaiting();
    await vi.advanceTimersByTimeAsync(14_000);
    await poll('p', { a: 'COMPLETED', b: 'RUNNING' });
    await vi.advanceTimersByTimeAsync(100);
    await isWaiting();
    await vi.advanceTimersByTimeAsync(1000);
    expect(await first).toBe(': still here\nid: t1.f0.x0\n\n');
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

  it('continues when the store can be read again', async () => {
    const { content, poll, observers } = await setUp();
    let broken = true;
    const events: typeof content.store.events = async (after, limit) => {
      if (broken && limit > 0) throw new StoreError('io', 'no disk');
      return await content.store.events(after, limit);
    };
    const feed = new EventFeed({ events });
    observers.push(feed.observe);
    const api = createApi({ ...content, feed });
    const answer = await api.request('/events');
    const stream = readEvents(answer.body);
    const first = stream.next();
    await poll('p', { a: 'COMPLETED', b: 'RUNNING' });
    expect(await first).toMatchObject({ value: { type: 'poll' } });
    broken = false;
    const second = stream.next();
    await poll('p', { a: 'COMPLETED', b: 'RUNNING' });
    expect(await second).toMatchObject({ value: { type: 'transition', lastEventId: 't1.f0.x0' } });
  });

  it('reads the store fewer than 5 times for 50 clients at the same position', async () => {
    const { content } = await startApi();
    const { store } = storeOfFailures(1, 100);
    const { promise: isOpen, resolve: open } = Promise.withResolvers<void>();
    const events = vi.fn<typeof store.events>(async (after, limit) => {
      await isOpen;
      return await store.events(after, limit);
    });
    const api = createApi({ ...content, feed: new EventFeed({ events }) });
    const answers = await Promise.all(
      Array.from({ length: 50 }, async () => await api.request('/events?after=t0.f0')),
    );
    const firsts = answers.map(({ body }) => take(readEvents(body), 1));
    for (let turn = 0; turn < 100; turn += 1) await setImmediate();
    open();
    await Promise.all(firsts);

    expect(events.mock.calls.length).toBeLessThan(5);
  });

  it('is sent in chunks of bounded size', async () => {
    const { content } = await startApi();
    const { store, sent } = storeOfFailures(100, 8000);
    const feed = new EventFeed(store);
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

    expect(Math.max(...received.map(({ longest }) => longest))).toBeLessThan(42_000);
    for (const [n, { ids }] of received.entries()) {
      expect(ids?.filter((id) => id > n)).toEqual(sent.slice(n));
    }
  });
});

/** Creates a store of `end.settlement` failures with messages of this length. */
function storeOfFailures(count: number, length: number) {
  const end = { transition: 100, settlement: count, finish: 0 };
  const message = 'x'.repeat(length);
  const rowOf = (settlementId: number): RecordedEvents['settled'][number] => ({
    settlementId,
    transitionId: 1,
    at: 0,
    project: 'p',
    promptId: 'a',
    promptName: undefined,
    experiment: undefined,
    settlement: { errorInfo: { error_id: 'E', error_msg: message }, errorMsgTruncated: false },
    cause: '0123456789abcdef',
  });
  return {
    end,
    sent: Array.from({ length: count }, (_, n) => n + 1),
    store: {
      events: async (after: EventPosition, limit: number): Promise<RecordedEvents> => {
        if (limit === 0) return { transitions: [], settled: [], finishes: [], end: { ...end } };
        const left = Math.min(limit, end.settlement - after.settlement);
        const settled = Array.from({ length: left }, (_, n) => rowOf(after.settlement + n + 1));
        return { transitions: [], settled, finishes: [], end: { ...end } };
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
