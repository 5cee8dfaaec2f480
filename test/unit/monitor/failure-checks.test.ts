import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import type { Tries } from '../../../src/domain/failure.ts';
import { ApiError, StoreError } from '../../../src/monitor/errors.ts';
import { FailureReporter } from '../../../src/monitor/failure-reporter.ts';
import type { PendingFailure } from '../../../src/monitor/ports/store.ts';
import { eventLog, neverStopping } from '../../support/monitor.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const NEVER_TRIED: Tries = {
  count: 0,
  useless: 0,
  firstAt: undefined,
  lastAt: undefined,
  nextAt: 0,
};

/** Creates a reporter on a store in memory; `looks` has the seconds in which it looked. */
function setUp() {
  const startedAt = Date.now();
  const pending = new Map<number, PendingFailure>();
  const looks: number[] = [];
  const log = eventLog();
  const state = {
    lease: 1 as number | undefined,
    isBroken: false,
    losesAnswer: false,
    settlements: 0,
    answer: () => Promise.resolve(),
  };
  const seconds = () => Math.floor((Date.now() - startedAt) / 1000);
  const reporter = new FailureReporter({
    service: {
      getErrorInfo: async () => {
        await state.answer();
        return { errorInfo: { error_id: 'QUOTA', error_msg: null }, errorMsgTruncated: false };
      },
    },
    store: {
      pendingFailures: ({ dueAt = Infinity, limitPerProject }) => {
        looks.push(seconds());
        const due = [...pending.values()].filter(({ tries: { nextAt, lastAt = -Infinity } }) => {
          return nextAt <= dueAt || lastAt > dueAt;
        });
        return Promise.resolve(due.slice(0, limitPerProject));
      },
      settleFailure: ({ transitionId }) => {
        if (state.isBroken) return Promise.reject(new StoreError('full', 'the disk is full'));
        pending.delete(transitionId);
        state.settlements += 1;
        return state.losesAnswer
          ? Promise.reject(new StoreError('io', 'the connection was lost'))
          : Promise.resolve();
      },
      postponeFailure: ({ transitionId }, tries) => {
        const failure = pending.get(transitionId);
        if (failure !== undefined) pending.set(transitionId, { ...failure, tries });
        return Promise.resolve();
      },
    },
    clock: systemClock,
    emit: log.emit,
    parallelPerProject: () => 2,
    shutdown: neverStopping(),
    lease: () => state.lease,
  });
  return {
    reporter,
    looks,
    log,
    state,
    seconds,
    fails: (transitionId: number) => {
      const named = { project: 'p', promptId: `${transitionId}`, promptName: undefined };
      pending.set(transitionId, {
        transitionId,
        token: undefined,
        ...named,
        removedAt: undefined,
        tries: NEVER_TRIED,
      });
    },
    wait: (ms: number) => vi.advanceTimersByTimeAsync(ms),
    lines: () => log.of('prompt.failed').length,
  };
}

it('the failure reporter leaves no timer if asking for the lease has woken it', async () => {
  const { reporter, state, wait } = setUp();
  let isTold = false;
  Object.defineProperty(state, 'lease', {
    get: () => {
      // A worker that is asked finds that its lease is over, and tells that once.
      if (isTold) return undefined;
      isTold = true;
      return reporter.wake();
    },
  });
  reporter.start();
  await wait(500);
  await reporter.stop();
  expect(vi.getTimerCount()).toBe(0);
});

it('the failure reporter checks for failures every 10 s, and at once when it is woken', async () => {
  const { reporter, looks, fails, wait, lines } = setUp();
  reporter.start();
  await wait(21_500);
  expect(looks).toEqual([0, 10, 20]);

  fails(1);
  reporter.wake();
  await wait(0);
  expect(lines()).toBe(1);

  fails(2);
  await wait(10_000);
  expect(lines()).toBe(2);
  await reporter.stop();
});

it('the failure reporter checks once more if it is woken during a check', async () => {
  const { reporter, looks, wait } = setUp();
  reporter.start();
  reporter.wake();
  reporter.wake();
  await wait(0);
  expect(looks).toEqual([0, 0]);
  await reporter.stop();
});

it('the failure reporter reports a backlog without pauses', async () => {
  const { reporter, fails, wait, lines } = setUp();
  for (let id = 1; id <= 7; id += 1) fails(id);
  reporter.start();
  await wait(0);
  expect(lines()).toBe(7);
  await reporter.stop();
});

it('the failure reporter checks every second while a report is in progress', async () => {
  const { reporter, fails, state, wait, lines } = setUp();
  const slow = Promise.withResolvers<void>();
  state.answer = () => slow.promise;
  fails(1);
  reporter.start();
  await wait(100);
  state.answer = () => Promise.resolve();
  fails(2);
  await wait(1000);
  expect(lines()).toBe(1);
  slow.resolve();
  await wait(0);
  expect(lines()).toBe(2);
  await reporter.stop();
});

it('the failure reporter makes each retry when it is due', async () => {
  const { reporter, fails, state, wait, log, seconds } = setUp();
  const tries: number[] = [];
  state.answer = () => {
    tries.push(seconds());
    return Promise.reject(new ApiError('network', 'network', {}));
  };
  fails(1);
  reporter.start();
  await wait(120_000);
  expect(tries).toEqual([0, 15, 45, 105]);
  expect(log.of('prompt.failed')).toEqual([]);
  await reporter.stop();
});

it('the failure reporter retries within 10 s after the clock is set back', async () => {
  const { reporter, fails, state, wait, lines } = setUp();
  state.answer = () => Promise.reject(new ApiError('network', 'network', {}));
  fails(1);
  reporter.start();
  await wait(100);
  state.answer = () => Promise.resolve();
  vi.setSystemTime(Date.now() - 3_600_000);
  await wait(10_000);
  expect(lines()).toBe(1);
  await reporter.stop();
});

it('the failure reporter checks within 1 s after it gets a new lease', async () => {
  const { reporter, looks, fails, state, wait, lines } = setUp();
  fails(1);
  state.lease = undefined;
  reporter.start();
  await wait(5500);
  expect(looks).toEqual([]);
  state.lease = 2;
  await wait(1000);
  expect(lines()).toBe(1);
  await reporter.stop();
});

it('the failure reporter retries a failed settlement after 5 s, and makes no check meanwhile', async () => {
  const { reporter, looks, fails, state, wait, lines } = setUp();
  state.isBroken = true;
  fails(1);
  reporter.start();
  await wait(4500);
  expect(looks).toEqual([0]);
  state.isBroken = false;
  await wait(1000);
  expect(looks.at(-1)).toBe(5);
  await wait(60_000);
  expect(lines()).toBe(1);
  await reporter.stop();
});

it('the failure reporter repeats a settlement whose answer was lost, and then forgets it', async () => {
  const { reporter, fails, state, wait, lines } = setUp();
  state.losesAnswer = true;
  fails(1);
  reporter.start();
  await wait(1000);
  state.losesAnswer = false;
  await wait(20_000);
  expect(state.settlements).toBe(2);
  await reporter.stop();
  expect(state.settlements).toBe(2);
  expect(lines()).toBe(1);
});

it('the failure reporter leaves no timer when it stops', async () => {
  const { reporter, fails, wait } = setUp();
  fails(1);
  reporter.start();
  await wait(500);
  await reporter.stop();
  expect(vi.getTimerCount()).toBe(0);
});
