import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { ApiError } from '../../../src/monitor/errors.ts';
import { createRateLimit, Gate, type Pass, type RequestClass } from '../../../src/client/gate.ts';

const never = new AbortController().signal;

function open(slots: number, perSecond = 0): Gate {
  return new Gate(slots, createRateLimit(perSecond, systemClock), systemClock);
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Runs everything that can run without time passing. */
async function settle(): Promise<void> {
  await vi.advanceTimersByTimeAsync(0);
}

interface Admitted {
  readonly who: string;
  readonly pass: Pass;
}

/** Sends requests through a gate and records the order in which they are admitted. */
function crowd(gate: Gate) {
  const admitted: Admitted[] = [];
  const queue = async (who: string, requestClass: RequestClass, signal = never): Promise<void> => {
    const pass = await gate.enter(requestClass, 'key', signal);
    pass.sent();
    admitted.push({ who, pass });
  };
  return { admitted, queue, names: () => admitted.map(({ who }) => who) };
}

it('a request whose key is held while it waits gives its slot to the next one', async () => {
  const gate = open(1);
  const holder = await gate.enter('healthy', 'key', never);
  const held = gate.enter('healthy', 'key', never);
  const other = gate.enter('healthy', 'other key', never);
  gate.hold('key', new ApiError('rate_limited', 'too many', { retryAfterMs: 60_000 }));
  holder.release();
  await expect(held).rejects.toMatchObject({ reason: 'rate_limited' });
  await expect(other).resolves.toBeDefined();
});

describe('the admission order', () => {
  /** Returns the order of admission of a full queue to one slot, always left at once. */
  async function orderOf(...line: readonly (readonly [string, RequestClass])[]): Promise<string> {
    const gate = open(1);
    const holder = await gate.enter('healthy', 'key', never);
    const { queue, admitted, names } = crowd(gate);
    for (const [who, kind] of line) void queue(who, kind);
    holder.release();
    for (let index = 0; index < line.length; index += 1) {
      await settle();
      admitted.at(-1)?.pass.release();
    }
    await settle();
    return names().join('');
  }

  it('is first in, first out among healthy projects', async () => {
    expect(await orderOf(['a', 'healthy'], ['b', 'healthy'], ['c', 'healthy'])).toBe('abc');
  });

  it('prefers healthy projects, but gives every fourth slot to failing ones and details in turn', async () => {
    const line = [
      ...Array.from({ length: 3 }, () => ['D', 'detail'] as const),
      ...Array.from({ length: 3 }, () => ['T', 'failing'] as const),
      ...Array.from({ length: 12 }, () => ['h', 'healthy'] as const),
    ];
    // The slot's first holder was healthy as well.
    expect(await orderOf(...line)).toBe('hhThhhDhhhThhhDhTD');
  });
});

it('a wait that is aborted leaves no timer behind when no other request waits', async () => {
  const gate = open(5, 1);
  const { queue } = crowd(gate);
  const controller = new AbortController();
  await queue('a', 'healthy');
  const given = queue('b', 'healthy', controller.signal);
  expect(vi.getTimerCount()).toBe(1);
  controller.abort();
  await expect(given).rejects.toBe(controller.signal.reason);
  expect(vi.getTimerCount()).toBe(0);
  const late = gate.enter('healthy', 'key', controller.signal);
  await expect(late).rejects.toBe(controller.signal.reason);
});

it('the rate limit does not count a request that was never sent', async () => {
  const gate = open(8, 1);
  const first = await gate.enter('healthy', 'key', never);
  const { queue, names } = crowd(gate);
  void queue('second', 'healthy');
  first.release();
  await settle();
  expect(names()).toEqual(['second']);
});

it('the gate keeps all its limits and settles every request, in any sequence', async () => {
  const step = fc.record({
    kind: fc.constantFrom<RequestClass>('healthy', 'failing', 'detail'),
    afterMs: fc.nat(300),
    connectMs: fc.nat(300),
    holdMs: fc.nat(2000),
    givesUpAfterMs: fc.option(fc.nat(3000)),
  });
  const setting = fc.record({
    slots: fc.integer({ min: 1, max: 6 }),
    rate: fc.constantFrom(0, 0.7, 2.5, 7),
  });
  await fc.assert(
    fc.asyncProperty(setting, fc.array(step, { maxLength: 40 }), async ({ slots, rate }, steps) => {
      const gate = open(slots, rate);
      const inFlight: RequestClass[] = [];
      const sentAt: number[] = [];
      let ended = 0;
      const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
      const run = async ({ kind, connectMs, holdMs, givesUpAfterMs }: (typeof steps)[number]) => {
        const controller = new AbortController();
        if (givesUpAfterMs !== null) setTimeout(() => controller.abort(), givesUpAfterMs);
        try {
          const pass = await gate.enter(kind, 'key', controller.signal);
          inFlight.push(kind);
          const failing = inFlight.filter((other) => other === 'failing').length;
          const details = inFlight.filter((other) => other === 'detail').length;
          expect(inFlight.length).toBeLessThanOrEqual(slots);
          expect(Math.max(failing, details)).toBeLessThanOrEqual(
            Math.max(1, Math.floor(slots / 2)),
          );
          expect(failing + details).toBeLessThanOrEqual(Math.max(1, slots - 1));
          await sleep(connectMs);
          pass.sent();
          sentAt.push(systemClock.monotonic());
          await sleep(holdMs);
          inFlight.splice(inFlight.indexOf(kind), 1);
          pass.release();
        } catch (error) {
          if (error !== controller.signal.reason) throw error;
        } finally {
          ended += 1;
        }
      };
      const all: Promise<void>[] = [];
      for (const one of steps) {
        await vi.advanceTimersByTimeAsync(one.afterMs);
        all.push(run(one));
      }
      await vi.advanceTimersByTimeAsync(40 * 4000);
      expect(ended).toBe(steps.length);
      await Promise.all(all);
      const most = rate === 0 ? Number.POSITIVE_INFINITY : Math.max(1, Math.floor(rate));
      const windowMs = Math.max(1000, 1000 / rate);
      for (const from of sentAt) {
        const within = sentAt.filter((at) => at >= from && at < from + windowMs);
        expect(within.length).toBeLessThanOrEqual(most);
      }
    }),
    { numRuns: 50 },
  );
});
