import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { causeOf } from '../../../src/domain/cause.ts';
import type { ErrorInfo } from '../../../src/domain/failure.ts';
import { ApiError, StoreError, type ApiFailureReason } from '../../../src/monitor/errors.ts';
import { FailureReporter } from '../../../src/monitor/failure-reporter.ts';
import type { FailureKey, PendingFailure, Store } from '../../../src/monitor/ports/store.ts';
import { Poller } from '../../../src/monitor/poller.ts';
import { openStoreInProcess } from '../../support/store-in-process.ts';
import {
  eventLog,
  fakeClock,
  listingOf,
  neverStopping,
  scriptedService,
} from '../../support/monitor.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const MINUTE = 60_000;
/** Long enough for a slow machine. */
const SLOW = { timeout: 100_000 };
const info: ErrorInfo = { error_id: 'QUOTA', error_msg: 'too much' };

async function setUp() {
  const directory = await temporaryDirectory();
  const clock = fakeClock();
  const log = eventLog();
  const store = await openStoreInProcess({
    path: join(directory.path, 'store.db'),
    clock,
    emit: () => {},
  });
  await store.configureProjects(['p'], clock.now());
  const listings = scriptedService();
  const shutdown = neverStopping();
  const poller = new Poller({
    service: listings,
    store,
    clock,
    emit: () => {},
    missingAfter: () => 3,
    maxIntervalMs: () => 60_000,
    shutdown,
  });
  const fails = async (...ids: readonly string[]) => {
    const run = { dueAt: clock.now(), nextAt: undefined };
    listings.shows(listingOf({}));
    await poller.poll({ id: 'p', datasets: false }, run);
    listings.shows(listingOf(Object.fromEntries(ids.map((id) => [id, 'FAILED']))));
    await poller.poll({ id: 'p', datasets: false }, run);
  };

  let answer: () => Promise<ErrorInfo | undefined> = () => Promise.resolve(info);
  /** Delays the results of reads until it resolves. */
  let onTheWay: Promise<void> | undefined;
  let afterFailover: readonly PendingFailure[] | undefined;
  const settled: FailureKey[] = [];
  const asked: string[] = [];
  const broken = new Set<keyof Store>();
  const unlessBroken = <Result>(method: keyof Store, call: () => Promise<Result>) =>
    broken.has(method) ? Promise.reject(new StoreError('full', 'the disk is full')) : call();
  const reporterOf = (lease?: () => number | undefined) =>
    new FailureReporter({
      service: {
        getErrorInfo: async (_project, promptId) => {
          asked.push(promptId);
          const errorInfo = await answer();
          return errorInfo && { errorInfo, errorMsgTruncated: false };
        },
      },
      store: {
        pendingFailures: async (query) => {
          const found = await store.pendingFailures(query);
          await onTheWay;
          return afterFailover ?? found;
        },
        settleFailure: (failure, ...given) =>
          unlessBroken('settleFailure', async () => {
            await store.settleFailure(failure, ...given);
            settled.push(keyOf(failure));
            afterFailover = afterFailover?.filter((other) => other.token !== failure.token);
          }),
        postponeFailure: (...given) => store.postponeFailure(...given),
      },
      clock,
      emit: log.emit,
      parallelPerProject: () => 2,
      shutdown,
      ...(lease && { lease }),
    });
  return {
    clock,
    log,
    store,
    fails,
    asked,
    settled,
    broken,
    reporterOf,
    delayReads: (until: Promise<void>) => {
      onTheWay = until;
    },
    /** Loses the pending failure and gives its number to a later failure of this prompt. Returns both. */
    failsOver: async (promptId: string) => {
      const [lost] = await store.pendingFailures({ limitPerProject: 1 });
      if (lost === undefined) throw new Error('nothing is pending');
      const found = { ...lost, promptId, token: 'after the failover' };
      afterFailover = [found];
      return { lost, found };
    },
    answers: (next: () => Promise<ErrorInfo | undefined>) => {
      answer = next;
    },
    refuses: (reason: ApiFailureReason, statusCode?: number) => {
      answer = () => Promise.reject(new ApiError(reason, reason, { statusCode }));
    },
    /** Runs a reporter until nothing is due any more. */
    report: async () => {
      const reporter = reporterOf();
      reporter.start();
      await reporter.stop();
    },
    [Symbol.asyncDispose]: async () => {
      await store.close();
      await directory[Symbol.asyncDispose]();
    },
  };
}

let given: Awaited<ReturnType<typeof setUp>>;
beforeEach(async () => {
  given = await setUp();
});
afterEach(() => given[Symbol.asyncDispose]());

it('a failure is logged with its error_info and settled', async () => {
  const { fails, report, log, store } = given;
  await fails('a');

  await report();

  expect(log.of('prompt.failed')).toMatchObject([
    {
      project: 'p',
      promptId: 'a',
      promptName: 'name of a',
      errorInfo: info,
      reason: undefined,
      cause: causeOf(info).id,
    },
  ]);
  expect(await store.failures({})).toMatchObject([
    { settlement: { errorInfo: info }, cause: causeOf(info).id },
  ]);
  expect(await store.pendingFailures({ limitPerProject: 10 })).toEqual([]);
});

it('a prompt id of . or .. is reported as invalid_id at once, without a request', async () => {
  const { fails, report, log, asked } = given;
  await fails('.', '..');

  await report();

  expect(asked).toEqual([]);
  expect(log.of('prompt.failed').map(({ errorInfo, reason }) => [errorInfo, reason])).toEqual([
    [null, 'invalid_id'],
    [null, 'invalid_id'],
  ]);
});

it.each([
  ['not_found', 404],
  ['validation', 422],
  ['client_error', 418],
  ['redirect', 302],
  ['too_large', 200],
  ['invalid_response', 200],
] as const)(
  'the failure reporter gives up after 3 tries over 5 minutes if the request fails with %s',
  async (reason, code) => {
    const { fails, report, log, refuses, clock, asked } = given;
    await fails('a');
    refuses(reason, code);

    await report();
    clock.advance(MINUTE);
    await report();
    clock.advance(3 * MINUTE);
    await report();
    expect(log.of('prompt.failed')).toEqual([]);
    clock.advance(MINUTE);
    await report();

    expect(asked).toHaveLength(3);
    expect(log.of('prompt.failed')).toMatchObject([{ errorInfo: null, reason }]);
  },
);

it('the failure reporter gives up after 3 tries if the response has no error_info', async () => {
  const { fails, report, log, answers, clock } = given;
  await fails('a');
  answers(() => Promise.resolve(undefined));

  for (const minutes of [0, 1, 4]) {
    clock.advance(minutes * MINUTE);
    await report();
  }

  expect(log.of('prompt.failed')).toMatchObject([
    { errorInfo: null, reason: 'no_error_info', cause: causeOf(undefined).id },
  ]);
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
  'a failure stays pending while the service is down (%s %s), and is reported afterwards',
  async (reason, code) => {
    const { fails, report, log, refuses, answers, clock, asked } = given;
    await fails('a');
    refuses(reason, code);

    await report();
    clock.advance(30_000);
    await report();
    expect(asked).toHaveLength(2);
    clock.advance(23 * 60 * MINUTE);
    await report();
    expect(log.of('prompt.failed')).toEqual([]);
    answers(() => Promise.resolve(info));
    clock.advance(30 * MINUTE);
    await report();

    expect(log.of('prompt.failed')).toMatchObject([{ errorInfo: info }]);
  },
);

it('a failure is settled as unavailable after the service was down for 24 hours', async () => {
  const { fails, report, log, refuses, clock } = given;
  await fails('a');
  refuses('network');

  await report();
  clock.advance(24 * 60 * MINUTE);
  await report();

  expect(log.of('prompt.failed')).toMatchObject([{ errorInfo: null, reason: 'unavailable' }]);
});

it('the failure reporter retries at once if the clock is set back to before the last try', async () => {
  const { fails, report, log, refuses, answers, clock } = given;
  await fails('a');
  refuses('network');
  await report();
  answers(() => Promise.resolve(info));
  clock.set(clock.now() - 60 * MINUTE);

  await report();

  expect(log.of('prompt.failed')).toHaveLength(1);
});

it('a clock that is set back before the first try does not delay that try', async () => {
  const { fails, report, log, clock } = given;
  await fails('a');
  clock.set(clock.now() - 60 * MINUTE);

  await report();

  expect(log.of('prompt.failed')).toHaveLength(1);
});

describe('a project that is removed from the configuration', () => {
  it('has its failures settled as project_removed after 5 minutes, without a request', async () => {
    const { fails, report, log, store, clock, asked } = given;
    await fails('a');
    await store.configureProjects([], clock.now());

    await report();
    clock.advance(4 * MINUTE);
    await report();
    expect(log.of('prompt.failed')).toEqual([]);
    clock.advance(MINUTE);
    await report();

    expect(asked).toEqual([]);
    expect(log.of('prompt.failed')).toMatchObject([{ reason: 'project_removed' }]);
  });

  it('has its failures reported if it is added again', async () => {
    const { fails, report, log, store, clock } = given;
    await fails('a');
    await store.configureProjects([], clock.now());
    await report();
    await store.configureProjects(['p'], clock.now());
    clock.advance(30_000);

    await report();

    expect(log.of('prompt.failed')).toMatchObject([{ errorInfo: info }]);
  });
});

describe('a store that rejects settlements', () => {
  it('causes no second log line while the process runs', async () => {
    const { fails, log, broken, reporterOf, clock, store, asked } = given;
    await fails('a');
    broken.add('settleFailure');
    const reporter = reporterOf();

    await expect(reporter.drain(['p'])).rejects.toThrow(StoreError);
    expect(log.of('prompt.failed')).toHaveLength(1);
    broken.clear();
    clock.advance(10_000);
    await reporter.drain(['p']);

    expect(log.of('prompt.failed')).toHaveLength(1);
    expect(asked).toHaveLength(1);
    expect(await store.pendingFailures({ limitPerProject: 1 })).toEqual([]);
  });

  it('causes no second log line after a clean stop if it has recovered by then', async () => {
    const { fails, log, broken, reporterOf, store } = given;
    await fails('a', 'b');
    broken.add('settleFailure');
    const reporter = reporterOf();
    reporter.start();
    await expect.poll(() => log.of('prompt.failed'), SLOW).toHaveLength(2);
    broken.clear();

    await reporter.stop();
    await reporterOf().drain(['p']);

    expect(log.of('prompt.failed')).toHaveLength(2);
    expect(await store.pendingFailures({ limitPerProject: 2 })).toEqual([]);
  });

  it('does not prevent the reporter from stopping', async () => {
    const { fails, log, broken, reporterOf } = given;
    await fails('a');
    broken.add('settleFailure');
    const reporter = reporterOf();
    reporter.start();
    await expect.poll(() => log.of('prompt.failed'), SLOW).toHaveLength(1);

    await expect(reporter.stop()).resolves.toBeUndefined();
  });

  it('causes a second log line with the same transition_id after a crash', async () => {
    const { fails, log, broken, reporterOf, store } = given;
    await fails('a');
    const [failure] = await store.pendingFailures({ limitPerProject: 1 });
    broken.add('settleFailure');
    await expect(reporterOf().drain(['p'])).rejects.toThrow(StoreError);
    broken.clear();

    await reporterOf().drain(['p']);

    const id = failure?.transitionId ?? 'none';
    expect(log.of('prompt.failed').map(({ transitionId }) => transitionId)).toEqual([id, id]);
  });
});

it('a failure that is settled during a read that returns it as pending is not logged again', async () => {
  const { fails, reporterOf, answers, delayReads, asked, log } = given;
  const answered = Promise.withResolvers<ErrorInfo>();
  const arrived = Promise.withResolvers<void>();
  answers(() => answered.promise);
  await fails('a');
  const reporter = reporterOf();
  reporter.start();
  await vi.waitFor(() => expect(asked).toEqual(['a']), SLOW);
  delayReads(arrived.promise);
  reporter.wake();
  answered.resolve(info);
  await vi.waitFor(() => expect(log.of('prompt.failed').length).toBe(1), SLOW);
  await vi.waitFor(async () => {
    expect(await given.store.pendingFailures({ limitPerProject: 1 })).toEqual([]);
  }, SLOW);
  arrived.resolve();
  await reporter.stop();
  expect(log.of('prompt.failed').length).toBe(1);
});

describe('a failover that gives the number of a lost failure to a new one', () => {
  it.each([
    ['another prompt', 'b'],
    ['the same prompt', 'a'],
  ])(
    'does not settle the new one by the unstored settlement of the lost one (%s)',
    async (_, promptId) => {
      const { fails, log, asked, settled, broken, reporterOf, failsOver } = given;
      await fails('a');
      broken.add('settleFailure');
      const reporter = reporterOf();
      await expect(reporter.drain(['p'])).rejects.toThrow(StoreError);
      const { lost, found } = await failsOver(promptId);
      broken.clear();
      await reporter.drain(['p']);

      expect(asked).toEqual(['a', promptId]);
      expect(log.of('prompt.failed').map((line) => line.promptId)).toEqual(['a', promptId]);
      expect(settled).toEqual([keyOf(lost), keyOf(found)]);
    },
  );

  it.each([
    ['another prompt', 'b'],
    ['the same prompt', 'a'],
  ])(
    'does not delay the report of the new one until the lost one is reported (%s)',
    async (_, promptId) => {
      const { fails, log, asked, answers, settled, reporterOf, failsOver } = given;
      await fails('a');
      const slow = Promise.withResolvers<ErrorInfo>();
      answers(() => slow.promise);
      const reporter = reporterOf();
      reporter.start();
      await vi.waitFor(() => expect(asked).toEqual(['a']), SLOW);
      answers(() => Promise.resolve(info));
      const { lost, found } = await failsOver(promptId);
      reporter.wake();
      await vi.waitFor(() => expect(settled).toEqual([keyOf(found)]), SLOW);
      expect(log.of('prompt.failed').map((line) => line.promptId)).toEqual([promptId]);

      slow.resolve(info);
      await reporter.stop();
      expect(settled).toEqual([keyOf(found), keyOf(lost)]);
    },
  );
});

it('drain reports every pending failure once, even if it is not due', async () => {
  const { fails, refuses, answers, reporterOf, log } = given;
  await fails('a', 'b', 'c', 'd', 'e');
  refuses('network');
  await reporterOf().drain(['p']);
  answers(() => Promise.resolve(info));

  await reporterOf().drain(['p']);

  expect(log.of('prompt.failed').map(({ promptId }) => promptId)).toEqual([
    'a',
    'b',
    'c',
    'd',
    'e',
  ]);
});

it('the failure reporter sends at most parallelPerProject requests of a project at a time', async () => {
  const { fails, answers, reporterOf, asked, log } = given;
  await fails('a', 'b', 'c', 'd', 'e');
  const held = Promise.withResolvers<void>();
  const unanswered: number[] = [];
  answers(async () => {
    unanswered.push(asked.length - log.of('prompt.failed').length);
    await held.promise;
    return info;
  });
  const reporter = reporterOf();
  reporter.start();
  await vi.waitFor(() => expect(asked.length).toBeGreaterThanOrEqual(2), SLOW);
  held.resolve();
  await vi.waitFor(() => expect(log.of('prompt.failed')).toHaveLength(5), SLOW);
  await reporter.stop();

  expect(Math.max(...unanswered)).toBe(2);
});

describe('a failure reporter with a lease', () => {
  it.each([
    ['its line', () => Promise.resolve(info)],
    ['its next try', () => Promise.reject(new ApiError('network', 'network', {}))],
  ])(
    'discards %s if its lease ends during the request, and leaves the failure pending',
    async (_, late) => {
      const { fails, log, store, asked, answers, reporterOf } = given;
      await fails('a');
      let lease: number | undefined = 1;
      const gate = Promise.withResolvers<void>();
      answers(async () => {
        await gate.promise;
        return await late();
      });
      const reporter = reporterOf(() => lease);
      reporter.start();
      await vi.waitFor(() => expect(asked).toEqual(['a']), SLOW);

      lease = undefined;
      gate.resolve();
      await reporter.stop();
      expect(log.of('prompt.failed')).toEqual([]);
      const [pending] = await store.pendingFailures({ limitPerProject: 10 });
      expect(pending?.tries.count).toBe(0);

      // Without a lease it takes none. Under the next lease it reports those that no other worker has reported.
      await reporter.drain(['p']);
      reporter.start();
      await reporter.stop();
      expect(asked).toEqual(['a']);
      answers(() => Promise.resolve(info));
      lease = 2;
      reporter.start();
      await vi.waitFor(() => expect(log.of('prompt.failed').length).toBe(1), SLOW);
      await reporter.stop();
      expect(await store.failures({})).toMatchObject([{ settlement: { errorInfo: info } }]);
    },
  );

  it('settles a failure that it has logged even after its lease has ended', async () => {
    const { fails, log, store, broken, reporterOf } = given;
    await fails('a');
    let lease: number | undefined = 1;
    broken.add('settleFailure');
    const reporter = reporterOf(() => lease);
    reporter.start();
    await vi.waitFor(() => expect(log.of('prompt.failed').length).toBe(1), SLOW);

    lease = undefined;
    broken.clear();
    await reporter.stop();
    expect(log.of('prompt.failed').length).toBe(1);
    expect(await store.pendingFailures({ limitPerProject: 10 })).toEqual([]);
  });
});

function keyOf({ transitionId, token }: FailureKey): FailureKey {
  return { transitionId, token };
}
