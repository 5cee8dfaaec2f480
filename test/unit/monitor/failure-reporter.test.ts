import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { causeOf } from '../../../src/domain/cause.ts';
import type { ErrorInfo, Settled, Tries } from '../../../src/domain/failure.ts';
import { ApiError, StoreError, type ApiFailureReason } from '../../../src/monitor/errors.ts';
import { FailureReporter } from '../../../src/monitor/failure-reporter.ts';
import type { FailureKey, PendingFailure } from '../../../src/monitor/ports/store.ts';
import { eventLog, neverStopping } from '../../support/monitor.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const MINUTE = 60_000;
const info: ErrorInfo = { error_id: 'QUOTA', error_msg: 'too much' };
const NEVER_TRIED: Tries = {
  count: 0,
  useless: 0,
  firstAt: undefined,
  lastAt: undefined,
  nextAt: 0,
};

function keyOf({ transitionId, token }: FailureKey): string {
  return `${transitionId} ${token}`;
}

function failing(reason: ApiFailureReason, statusCode?: number) {
  return () => Promise.reject(new ApiError(reason, reason, { statusCode }));
}

/** Creates a reporter on a store in memory; `looks` has the seconds in which it looked. */
function setUp() {
  const startedAt = Date.now();
  const pending = new Map<string, PendingFailure>();
  const settled: [token: string | undefined, outcome: Settled][] = [];
  const looks: number[] = [];
  const asked: string[] = [];
  const log = eventLog();
  const state = {
    lease: 1 as number | undefined,
    isBroken: false,
    losesAnswer: false,
    /** Delays the results of reads until it resolves. */
    onTheWay: Promise.resolve(),
    answer: (): Promise<ErrorInfo | undefined> => Promise.resolve(info),
  };
  const seconds = () => Math.floor((Date.now() - startedAt) / 1000);
  const create = () =>
    new FailureReporter({
      service: {
        getErrorInfo: async (_project, promptId) => {
          asked.push(promptId);
          const errorInfo = await state.answer();
          return errorInfo && { errorInfo, errorMsgTruncated: false };
        },
      },
      store: {
        pendingFailures: async ({ dueAt = Infinity, limitPerProject }) => {
          looks.push(seconds());
          const due = [...pending.values()].filter(({ tries: { nextAt, lastAt = -Infinity } }) => {
            return nextAt <= dueAt || lastAt > dueAt;
          });
          await state.onTheWay;
          return due.slice(0, limitPerProject);
        },
        settleFailure: (failure, outcome) => {
          if (state.isBroken) return Promise.reject(new StoreError('full', 'the disk is full'));
          pending.delete(keyOf(failure));
          settled.push([failure.token, outcome]);
          return state.losesAnswer
            ? Promise.reject(new StoreError('io', 'the connection was lost'))
            : Promise.resolve();
        },
        postponeFailure: (failure, tries) => {
          const found = pending.get(keyOf(failure));
          if (found !== undefined) pending.set(keyOf(failure), { ...found, tries });
          return Promise.resolve();
        },
      },
      clock: systemClock,
      emit: log.emit,
      parallelPerProject: () => 2,
      shutdown: neverStopping(),
      lease: () => state.lease,
    });
  let failures = 0;
  const add = (failure: PendingFailure) => pending.set(keyOf(failure), failure);
  return {
    reporter: create(),
    /** Creates the reporter of another process. */
    create,
    pending,
    settled,
    looks,
    asked,
    log,
    state,
    seconds,
    fails: (...promptIds: readonly string[]) => {
      for (const promptId of promptIds) {
        failures += 1;
        const named = { project: 'p', promptId, promptName: `name of ${promptId}` };
        const key = { transitionId: failures, token: undefined };
        add({ ...key, ...named, removedAt: undefined, tries: NEVER_TRIED });
      }
    },
    /** Removes the project from the configuration at this time, epoch ms; adds it again if that is undefined. */
    remove: (removedAt: number | undefined) => {
      for (const failure of pending.values()) add({ ...failure, removedAt });
    },
    /** Loses the pending failure, and gives its number to another one of the same prompt. */
    failsOver: () => {
      const [lost] = pending.values();
      pending.clear();
      if (lost !== undefined) add({ ...lost, token: 'after the failover' });
    },
    wait: (ms: number) => vi.advanceTimersByTimeAsync(ms),
    lines: () => log.of('prompt.failed').length,
  };
}

describe('the failure reporter', () => {
  it('logs a failure with its error_info, and settles it', async () => {
    const { reporter, fails, wait, log, settled } = setUp();
    fails('a');
    reporter.start();
    await wait(0);
    const cause = causeOf(info).id;
    const named = { project: 'p', transitionId: 1, promptId: 'a', promptName: 'name of a' };
    expect(log.of('prompt.failed')).toMatchObject([
      { ...named, errorInfo: info, reason: undefined, cause },
    ]);
    expect(log.of('error_info.fetched')).toMatchObject([{ ok: true }]);
    expect(settled).toMatchObject([[undefined, { errorInfo: info, cause }]]);
  });

  it.each(['.', '..'])('reports the prompt id %s as invalid_id, without a request', async (id) => {
    const { reporter, fails, wait, log, asked } = setUp();
    fails(id);
    reporter.start();
    await wait(0);
    expect(asked).toEqual([]);
    expect(log.of('prompt.failed')).toMatchObject([{ errorInfo: null, reason: 'invalid_id' }]);
  });

  it.each([
    ['not_found', failing('not_found', 404)],
    ['validation', failing('validation', 422)],
    ['client_error', failing('client_error', 418)],
    ['redirect', failing('redirect', 302)],
    ['too_large', failing('too_large', 200)],
    ['invalid_response', failing('invalid_response', 200)],
    ['no_error_info', () => Promise.resolve(undefined)],
  ] as const)('gives up after 3 tries over 5 minutes with %s', async (reason, answer) => {
    const { reporter, fails, state, wait, log, lines, asked } = setUp();
    state.answer = answer;
    fails('a');
    reporter.start();
    await wait(5 * MINUTE - 1000);
    expect(lines()).toBe(0);
    await wait(2000);
    expect(asked).toHaveLength(3);
    const cause = causeOf(undefined).id;
    expect(log.of('prompt.failed')).toMatchObject([{ errorInfo: null, reason, cause }]);
    expect(log.of('error_info.fetched').map(({ ok }) => ok)).toEqual([false, false, false]);
  });

  it.each([
    ['network', undefined],
    ['tls', undefined],
    ['timeout', undefined],
    ['client_error', 408],
    ['rate_limited', 429],
    ['server_error', 503],
    ['auth', 401],
  ] as const)(
    'reports a failure when the service works again after %s %s',
    async (reason, code) => {
      const { reporter, fails, state, wait, log, lines } = setUp();
      state.answer = failing(reason, code);
      fails('a');
      reporter.start();
      await wait(10 * MINUTE);
      expect(lines()).toBe(0);
      state.answer = () => Promise.resolve(info);
      await wait(15 * MINUTE);
      expect(log.of('prompt.failed')).toMatchObject([{ errorInfo: info }]);
    },
  );

  it('makes each try when it is due', async () => {
    const { reporter, fails, state, wait, seconds } = setUp();
    const tries: number[] = [];
    state.answer = () => {
      tries.push(seconds());
      return failing('network')();
    };
    fails('a');
    reporter.start();
    await wait(120_000);
    expect(tries).toEqual([0, 15, 45, 105]);
  });

  it('tries again within 10 s after the clock is set back', async () => {
    const { reporter, fails, state, wait, lines } = setUp();
    state.answer = failing('network');
    fails('a');
    reporter.start();
    await wait(100);
    state.answer = () => Promise.resolve(info);
    vi.setSystemTime(Date.now() - 3_600_000);
    await wait(10_000);
    expect(lines()).toBe(1);
  });

  it('gives up 5 minutes after the project was removed, without a request', async () => {
    const { reporter, fails, remove, wait, log, lines, asked } = setUp();
    fails('a');
    remove(Date.now());
    reporter.start();
    await wait(5 * MINUTE - 1000);
    expect(lines()).toBe(0);
    await wait(2000);
    expect(asked).toEqual([]);
    expect(log.of('prompt.failed')).toMatchObject([{ reason: 'project_removed' }]);
  });

  it('reports the failures of a project that was removed and is added again', async () => {
    const { reporter, fails, remove, wait, log } = setUp();
    fails('a');
    remove(Date.now());
    reporter.start();
    await wait(1000);
    remove(undefined);
    await wait(15_000);
    expect(log.of('prompt.failed')).toMatchObject([{ errorInfo: info }]);
  });

  it('drains every pending failure once, even if it is not due', async () => {
    const { reporter, fails, state, log } = setUp();
    const ids = ['a', 'b', 'c', 'd', 'e'];
    fails(...ids);
    state.answer = failing('network');
    await reporter.drain(['p']);
    state.answer = () => Promise.resolve(info);
    await reporter.drain(['p']);
    expect(log.of('prompt.failed').map(({ promptId }) => promptId)).toEqual(ids);
  });

  it('sends at most parallelPerProject requests of a project at a time', async () => {
    const { reporter, fails, state, wait, asked, lines } = setUp();
    const held = Promise.withResolvers<ErrorInfo>();
    state.answer = () => held.promise;
    fails('a', 'b', 'c', 'd', 'e');
    reporter.start();
    await wait(5000);
    expect(asked).toHaveLength(2);
    held.resolve(info);
    await wait(0);
    expect(lines()).toBe(5);
  });
});

describe('the failure reporter looks for failures', () => {
  it('every 10 s, and at once when it is woken', async () => {
    const { reporter, looks, fails, wait, lines } = setUp();
    reporter.start();
    await wait(21_500);
    expect(looks).toEqual([0, 10, 20]);
    fails('a');
    reporter.wake();
    await wait(0);
    expect(lines()).toBe(1);
    fails('b');
    await wait(10_000);
    expect(lines()).toBe(2);
  });

  it('once more if it is woken meanwhile', async () => {
    const { reporter, looks, wait } = setUp();
    reporter.start();
    reporter.wake();
    reporter.wake();
    await wait(0);
    expect(looks).toEqual([0, 0]);
  });

  it('every second while it reports one', async () => {
    const { reporter, fails, state, wait, lines } = setUp();
    const slow = Promise.withResolvers<ErrorInfo>();
    state.answer = () => slow.promise;
    fails('a');
    reporter.start();
    await wait(100);
    state.answer = () => Promise.resolve(info);
    fails('b');
    await wait(1000);
    expect(lines()).toBe(1);
    slow.resolve(info);
    await wait(0);
    expect(lines()).toBe(2);
  });

  it('until it stops, which waits for running reports and leaves no timer', async () => {
    const { reporter, fails, state, wait, lines } = setUp();
    const slow = Promise.withResolvers<ErrorInfo>();
    state.answer = () => slow.promise;
    fails('a');
    reporter.start();
    await wait(500);
    let isStopped = false;
    const stopping = reporter.stop().then(() => (isStopped = true));
    await wait(5000);
    expect(isStopped).toBe(false);
    slow.resolve(info);
    await stopping;
    expect([lines(), vi.getTimerCount()]).toEqual([1, 0]);
  });

  it('and logs none again that is settled before the answer arrives', async () => {
    const { reporter, fails, state, wait, pending, lines } = setUp();
    const answered = Promise.withResolvers<ErrorInfo>();
    const arrived = Promise.withResolvers<void>();
    state.answer = () => answered.promise;
    fails('a');
    reporter.start();
    await wait(0);
    state.onTheWay = arrived.promise;
    reporter.wake();
    answered.resolve(info);
    await wait(0);
    expect([lines(), pending.size]).toEqual([1, 0]);
    arrived.resolve();
    await reporter.stop();
    expect(lines()).toBe(1);
  });
});

describe('a store that rejects settlements', () => {
  it('is asked again after 5 s, for nothing else meanwhile, and causes no second line', async () => {
    const { reporter, looks, fails, state, wait, lines } = setUp();
    state.isBroken = true;
    fails('a');
    reporter.start();
    await wait(4500);
    expect(looks).toEqual([0]);
    state.isBroken = false;
    await wait(1000);
    expect(looks.at(-1)).toBe(5);
    await wait(60_000);
    expect(lines()).toBe(1);
  });

  it('fails a drain, and the next one causes no second line', async () => {
    const { reporter, fails, state, pending, asked, lines } = setUp();
    fails('a');
    state.isBroken = true;
    await expect(reporter.drain(['p'])).rejects.toThrow(StoreError);
    expect(lines()).toBe(1);
    state.isBroken = false;
    await reporter.drain(['p']);
    expect([lines(), asked.length, pending.size]).toEqual([1, 1, 0]);
  });

  it('causes no second line after a clean stop if it has recovered by then', async () => {
    const { reporter, fails, state, wait, pending, lines } = setUp();
    fails('a', 'b');
    state.isBroken = true;
    reporter.start();
    await wait(0);
    expect(lines()).toBe(2);
    state.isBroken = false;
    await reporter.stop();
    expect([lines(), pending.size]).toEqual([2, 0]);
  });

  it('lets the reporter stop, and the next one logs the same transition_id again', async () => {
    const { reporter, create, fails, state, wait, log } = setUp();
    fails('a');
    state.isBroken = true;
    reporter.start();
    await wait(0);
    await reporter.stop();
    state.isBroken = false;
    create().start();
    await wait(0);
    expect(log.of('prompt.failed').map(({ transitionId }) => transitionId)).toEqual([1, 1]);
  });

  it('and loses the answer is asked once more', async () => {
    const { reporter, fails, state, wait, settled, lines } = setUp();
    state.losesAnswer = true;
    fails('a');
    reporter.start();
    await wait(1000);
    state.losesAnswer = false;
    await wait(20_000);
    await reporter.stop();
    expect([lines(), settled.length]).toEqual([1, 2]);
  });
});

describe('a failover that gives the number of a lost failure to a new one', () => {
  const tokens = (settled: ReturnType<typeof setUp>['settled']) => settled.map(([token]) => token);

  it('does not settle the new one by the unstored settlement of the lost one', async () => {
    const { reporter, fails, failsOver, state, asked, settled } = setUp();
    fails('a');
    state.isBroken = true;
    await expect(reporter.drain(['p'])).rejects.toThrow(StoreError);
    failsOver();
    state.isBroken = false;
    await reporter.drain(['p']);
    expect(asked).toEqual(['a', 'a']);
    expect(tokens(settled)).toEqual([undefined, 'after the failover']);
  });

  it('does not delay the report of the new one until the lost one is reported', async () => {
    const { reporter, fails, failsOver, state, wait, settled } = setUp();
    fails('a');
    const slow = Promise.withResolvers<ErrorInfo>();
    state.answer = () => slow.promise;
    reporter.start();
    await wait(0);
    state.answer = () => Promise.resolve(info);
    failsOver();
    reporter.wake();
    await wait(0);
    expect(tokens(settled)).toEqual(['after the failover']);
    slow.resolve(info);
    await reporter.stop();
    expect(tokens(settled)).toEqual(['after the failover', undefined]);
  });
});

describe('a failure reporter with a lease', () => {
  it.each([
    ['its line', () => Promise.resolve(info)],
    ['its next try', failing('network')],
  ])('discards %s if its lease ends during the request', async (_, late) => {
    const { reporter, fails, state, wait, pending, asked, lines } = setUp();
    fails('a');
    const gate = Promise.withResolvers<void>();
    state.answer = () => gate.promise.then(late);
    reporter.start();
    await wait(0);
    state.lease = undefined;
    gate.resolve();
    await wait(0);
    expect(lines()).toBe(0);
    expect([...pending.values()]).toMatchObject([{ tries: NEVER_TRIED }]);

    // Without a lease it takes none. Under the next lease it reports those that no other worker has reported.
    await reporter.drain(['p']);
    await wait(20_000);
    expect(asked).toEqual(['a']);
    state.answer = () => Promise.resolve(info);
    state.lease = 2;
    await wait(1000);
    expect(lines()).toBe(1);
  });

  it('settles a failure that it has logged even after its lease has ended', async () => {
    const { reporter, fails, state, wait, pending, lines } = setUp();
    fails('a');
    state.isBroken = true;
    reporter.start();
    await wait(0);
    state.lease = undefined;
    state.isBroken = false;
    await reporter.stop();
    expect([lines(), pending.size]).toEqual([1, 0]);
  });

  it('leaves no timer if asking for the lease has woken it', async () => {
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
});
