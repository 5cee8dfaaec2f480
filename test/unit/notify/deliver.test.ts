import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { ProcessShutdown } from '../../../src/app/process.ts';
import type { Receiver } from '../../../src/domain/receiver.ts';
import { StoreError } from '../../../src/monitor/errors.ts';
import { Deliverer } from '../../../src/notify/deliver.ts';
import type { Delivery } from '../../../src/notify/answer.ts';
import type { Message } from '../../../src/notify/message.ts';
import { eventLog } from '../../support/monitor.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

beforeEach(() => void vi.useFakeTimers({ now: 1_700_000_000_000 }));
afterEach(() => void vi.useRealTimers());

const NEWS = { type: 'api.retry_sent', endpoint: 'get_prompt' } as const;

const receiverOf = (name: string): Receiver => ({
  name,
  type: 'slack',
  on: [],
  teams: undefined,
  projects: undefined,
  url: { env: 'URL', value: undefined },
});

const refuses = (more: object = {}): Delivery => ({ ok: false, reason: '503', ...more });

/** A deliverer over an outbox in memory. Attempts are noted as `receiver id`, with the seconds since the start. */
function setUp(...receivers: readonly string[]) {
  const started = Date.now();
  const log = eventLog();
  const shutdown = new ProcessShutdown(systemClock);
  const stored: { readonly receiver: string; readonly id: string; readonly createdAt: number }[] =
    [];
  const attempts: string[] = [];
  const world = {
    log,
    shutdown,
    attempts,
    stored,
    /** How often the outbox was asked. */
    looks: 0,
    waitMs: 24 * HOUR,
    answer: (_receiver: string, _signal: AbortSignal): Delivery | Promise<Delivery> => ({
      ok: true,
    }),
    failingStore: undefined as 'next' | 'done' | undefined,
    add: (receiver: string, id: string, createdAt = Date.now()) =>
      void stored.push({ receiver, id, createdAt }),
    configure: (...names: readonly string[]) => deliverer.configure(names.map(receiverOf)),
    after: (ms: number) => vi.advanceTimersByTimeAsync(ms),
  };
  const unlessBroken = (method: 'next' | 'done') => {
    if (world.failingStore === method) throw new StoreError('full', 'the disk is full');
  };
  const deliverer = new Deliverer({
    outboxOf: ({ name }) => ({
      configure: () => {},
      observe: () => true,
      next: async () => {
        world.looks += 1;
        await Promise.resolve();
        unlessBroken('next');
        const first = stored.find(({ receiver }) => receiver === name);
        if (first === undefined) return { waitMs: world.waitMs };
        const timestamp = new Date(first.createdAt).toISOString();
        const message: Message = {
          schema: 1,
          id: first.id,
          type: 'test',
          timestamp,
          data: { receiver: name },
        };
        return { message, createdAt: first.createdAt, project: 'p' };
      },
      done: async ({ id }) => {
        await Promise.resolve();
        unlessBroken('done');
        const index = stored.findIndex((each) => each.receiver === name && each.id === id);
        stored.splice(index, 1);
      },
      oldestDueAt: () => stored.find(({ receiver }) => receiver === name)?.createdAt,
    }),
    send: async ({ name }, { id }, { signal }) => {
      attempts.push(`${name} ${id} ${(Date.now() - started) / SECOND}`);
      return await world.answer(name, signal);
    },
    clock: systemClock,
    emit: log.emit,
    shutdown,
    onError: (error) => {
      throw error;
    },
  });
  world.configure(...receivers);
  return { ...world, world, deliverer };
}

it('sends the messages of a receiver one at a time and in order', async () => {
  const { world, attempts, stored, add, after } = setUp();
  const answers: ((delivery: Delivery) => void)[] = [];
  world.answer = () => new Promise((resolve) => void answers.push(resolve));
  add('a', '1');
  add('a', '2');
  world.configure('a');
  await after(MINUTE);
  expect(attempts).toEqual(['a 1 0']);
  answers[0]?.({ ok: true });
  await after(0);
  expect(attempts).toEqual(['a 1 0', 'a 2 60']);
  answers[1]?.({ ok: true });
  await after(0);
  expect(stored).toEqual([]);
  expect(world.log.of('notification.sent').map(({ id }) => id)).toEqual(['1', '2']);
});

it('tells what seems wrong about a message that was taken', async () => {
  const { world, add, after } = setUp();
  const doubt = 'recipients refused: 1 of 2';
  world.answer = () => ({ ok: true, doubt });
  add('a', '1');
  world.configure('a');
  await after(0);
  expect(world.log.of('notification.sent')).toEqual([expect.objectContaining({ doubt })]);
});

it('sends to others while one receiver does not answer', async () => {
  const { world, attempts, add, after, deliverer } = setUp('a', 'b');
  await after(0);
  world.answer = (name) => (name === 'a' ? new Promise(() => {}) : { ok: true });
  for (const id of ['1', '2']) {
    add('a', id);
    add('b', id);
  }
  deliverer.observe(NEWS);
  await after(HOUR);
  expect(attempts).toEqual(['a 1 0', 'b 1 0', 'b 2 0']);
});

describe('looks', () => {
  it('only after news, without anything to wait for', async () => {
    const { world, after, add, attempts, deliverer } = setUp('a');
    await after(HOUR);
    expect(world.looks).toBe(1);
    add('a', '1');
    deliverer.observe(NEWS);
    await after(0);
    expect(attempts).toEqual(['a 1 3600']);
  });

  it('again after news that came during a look', async () => {
    const { add, after, attempts, deliverer } = setUp('a');
    // The first look has begun, and has not read the store yet.
    await Promise.resolve();
    deliverer.observe(NEWS);
    queueMicrotask(() => add('a', '1'));
    await after(0);
    expect(attempts).toEqual(['a 1 0']);
  });

  it('at the time that the outbox names, but not within a second', async () => {
    const { world, after, deliverer } = setUp('a');
    await after(0);
    for (const [named, waitMs] of [
      [0, SECOND],
      [20 * SECOND, 20 * SECOND],
    ] as const) {
      world.waitMs = named;
      deliverer.observe(NEWS);
      await after(0);
      const { looks } = world;
      await after(waitMs - 1);
      expect(world.looks).toBe(looks);
      world.waitMs = HOUR;
      await after(1);
      expect(world.looks).toBe(looks + 1);
    }
  });
});

describe('a receiver that fails', () => {
  it('is tried again after 5 s, then after twice the pause up to 5 minutes, whatever happens', async () => {
    const { world, add, after, attempts, deliverer } = setUp();
    world.answer = () => refuses();
    add('a', '1');
    add('a', '2');
    world.configure('a');
    for (let second = 0; second < 20 * 60; second += 1) {
      deliverer.observe(NEWS);
      await after(SECOND);
    }
    expect(attempts).toEqual([0, 5, 15, 35, 75, 155, 315, 615, 915].map((at) => `a 1 ${at}`));
  });

  it('decides itself when it is tried again, but not within a second', async () => {
    const { world, add, after, attempts } = setUp();
    const waits = [0, 90 * SECOND, HOUR];
    world.answer = () => refuses({ retryAfterMs: waits.shift() });
    add('a', '1');
    world.configure('a');
    await after(2 * HOUR);
    expect(attempts.slice(0, 4)).toEqual([0, 1, 91, 3691].map((at) => `a 1 ${at}`));
  });

  it('is reported when it begins to fail and when it works again', async () => {
    const { world, add, after, deliverer, log } = setUp();
    const since = Date.now();
    world.answer = () => refuses({ reason: '403 invalid_token', statusCode: 403 });
    add('a', '1');
    world.configure('a', 'b');
    await after(10 * MINUTE);
    expect(log.events).toEqual([
      { type: 'notification.failed', receiver: 'a', reason: '403 invalid_token', statusCode: 403 },
    ]);
    expect(deliverer.states()).toMatchObject([
      { name: 'a', failing: { since, reason: '403 invalid_token' }, oldestDueAt: since },
      { name: 'b', failing: undefined, oldestDueAt: undefined },
    ]);
    log.clear();
    world.answer = () => ({ ok: true });
    await after(5 * MINUTE);
    expect(log.events).toEqual([
      { type: 'notification.sent', receiver: 'a', id: '1', message: 'test' },
      { type: 'notification.recovered', receiver: 'a', failuresBefore: 7 },
    ]);
    expect(deliverer.states()).toEqual([
      { name: 'a', failing: undefined, oldestDueAt: undefined },
      { name: 'b', failing: undefined, oldestDueAt: undefined },
    ]);
  });

  it('begins with a short pause after it has worked', async () => {
    const { world, add, after, attempts } = setUp();
    const answers = [refuses(), refuses(), { ok: true } as const, refuses()];
    world.answer = () => answers.shift() ?? { ok: true };
    add('a', '1');
    add('a', '2');
    world.configure('a');
    await after(MINUTE);
    expect(attempts).toEqual(['a 1 0', 'a 1 5', 'a 1 15', 'a 2 15', 'a 2 20']);
  });

  it('is given up for each message that is 24 h old, and gets the next one', async () => {
    const { world, add, after, attempts, stored, log } = setUp();
    world.answer = () => refuses();
    add('a', 'old', Date.now() - 24 * HOUR);
    add('a', 'young', Date.now() - 24 * HOUR + 10 * SECOND);
    add('a', 'new');
    world.configure('a');
    await after(MINUTE);
    expect(attempts.slice(0, 4)).toEqual(['a young 0', 'a young 5', 'a new 15', 'a new 35']);
    expect(stored.map(({ id }) => id)).toEqual(['new']);
    const givenUp = {
      type: 'notification.given_up',
      receiver: 'a',
      project: 'p',
      message: 'test',
      count: 1,
    };
    expect(log.of('notification.given_up')).toEqual([
      { ...givenUp, reason: undefined },
      { ...givenUp, reason: '503' },
    ]);
  });
});

describe('a failing store', () => {
  it('is asked again every 5 s', async () => {
    const { world, add, after, attempts, deliverer, log } = setUp('a');
    await after(0);
    add('a', '1');
    world.failingStore = 'next';
    deliverer.observe(NEWS);
    await after(0);
    const { looks } = world;
    for (let second = 0; second < 60; second += 1) {
      deliverer.observe(NEWS);
      await after(SECOND);
    }
    expect(world.looks - looks).toBe(12);
    expect(log.events).toEqual([
      { type: 'notification.store_failed', receiver: 'a', error: expect.any(StoreError) as Error },
    ]);
    world.failingStore = undefined;
    await after(5 * SECOND);
    expect(attempts).toHaveLength(1);
  });

  it('does not have an answered message sent again', async () => {
    const { world, add, after, attempts, stored } = setUp();
    world.failingStore = 'done';
    add('a', '1');
    add('a', '2');
    world.configure('a');
    await after(MINUTE);
    expect(attempts).toEqual(['a 1 0']);
    world.failingStore = undefined;
    await after(5 * SECOND);
    expect(attempts).toEqual(['a 1 0', 'a 2 65']);
    expect(stored).toEqual([]);
  });
});

describe('a reload', () => {
  it('ends the loop of a receiver that it removes, and begins that of a new one', async () => {
    const { world, add, after, attempts, deliverer } = setUp('a');
    await after(0);
    world.configure('b');
    add('a', '1');
    add('b', '1');
    deliverer.observe(NEWS);
    await after(HOUR);
    expect(attempts).toEqual(['b 1 0']);
    expect(deliverer.states().map(({ name }) => name)).toEqual(['b']);
  });

  it('sends nothing to a receiver that it removes while its message is looked up', async () => {
    const { world, add, after, attempts } = setUp();
    add('a', '1');
    world.configure('a');
    world.configure();
    await after(0);
    expect(attempts).toEqual([]);
  });

  it('has a failing receiver tried at once', async () => {
    const { world, add, after, attempts } = setUp();
    world.answer = () => refuses();
    add('a', '1');
    world.configure('a');
    await after(20 * MINUTE);
    const before = attempts.length;
    world.configure('a');
    await after(0);
    expect(attempts).toHaveLength(before + 1);
  });

  it('has a receiver tried at once whose attempt under the old options is in flight', async () => {
    const { world, add, after, attempts } = setUp();
    let answer: (delivery: Delivery) => void = () => {};
    world.answer = () => new Promise((resolve) => (answer = resolve));
    add('a', '1');
    world.configure('a');
    await after(0);
    world.configure('a');
    answer(refuses());
    await after(0);
    expect(attempts).toEqual(['a 1 0', 'a 1 0']);
  });

  it('has one loop send, also if it removes a receiver and adds it again during an attempt', async () => {
    const { world, add, after, attempts, stored } = setUp();
    let answer: (delivery: Delivery) => void = () => {};
    world.answer = () => new Promise((resolve) => (answer = resolve));
    add('a', '1');
    world.configure('a');
    await after(0);
    world.configure();
    world.configure('a');
    await after(HOUR);
    expect(attempts).toEqual(['a 1 0']);
    answer({ ok: true });
    await after(0);
    expect(stored).toEqual([]);
  });
});

describe('a stop', () => {
  it('ends every wait at once', async () => {
    const { world, add, after, shutdown, deliverer, attempts } = setUp();
    world.answer = () => refuses();
    add('failing', '1');

    world.configure('idle', 'failing');
    await after(0);
    shutdown.begin(HOUR);
    await deliverer.stop();
    deliverer.observe(NEWS);
    await after(HOUR);
    expect(attempts).toEqual(['failing 1 0']);
  });

  it('leaves an attempt in flight the grace period, and forgets what is answered then', async () => {
    const { world, add, after, shutdown, deliverer, stored, attempts } = setUp();
    let answer: (delivery: Delivery) => void = () => {};
    world.answer = () => new Promise((resolve) => (answer = resolve));
    add('a', '1');
    add('a', '2');
    world.configure('a');
    await after(0);
    shutdown.begin(8 * SECOND);
    const stopped = deliverer.stop();
    await after(5 * SECOND);
    answer({ ok: true });
    await stopped;
    expect(attempts).toEqual(['a 1 0']);
    expect(stored.map(({ id }) => id)).toEqual(['2']);
  });

  it('cancels an attempt after the grace period, which is no failure', async () => {
    const { world, add, after, shutdown, deliverer, log } = setUp();
    world.answer = (_name, signal) =>
      new Promise((resolve) => signal.addEventListener('abort', () => resolve(refuses())));
    add('a', '1');
    world.configure('a');
    await after(0);
    shutdown.begin(8 * SECOND);
    const stopped = deliverer.stop();
    await after(8 * SECOND);
    await stopped;
    expect(log.events).toEqual([]);
  });
});
