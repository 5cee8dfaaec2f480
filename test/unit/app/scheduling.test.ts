import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import type { Engine } from '../../../src/app/engine.ts';
import { Scheduling } from '../../../src/app/scheduling.ts';
import { StoreError } from '../../../src/monitor/errors.ts';
import {
  emitTo,
  type FinishedPoll,
  type MonitorEvent,
  type Observer,
} from '../../../src/monitor/events.ts';
import type { PollRun } from '../../../src/monitor/ports/watched-project.ts';

const PROJECT = {
  schedule: '*/10 * * * * *',
  timezone: 'UTC',
  pauses: { isPaused: false, maintenance: [] },
};
const FINISHED = { project: 'p' } as FinishedPoll;
/** Ends the turn of the event loop. */
const turn = () => vi.advanceTimersByTimeAsync(0);

beforeEach(() => void vi.useFakeTimers({ now: Date.parse('2026-11-21T10:00:00.250Z') }));
afterEach(() => vi.useRealTimers());

/** What the engine of a test says. Its projects are due every ten seconds. */
interface Given {
  readonly projects?: readonly string[];
  /** Those that this worker may poll; by default all. */
  readonly owned?: ReadonlySet<string>;
  readonly ownerOf?: () => Promise<string | undefined>;
}

/** Sets up projects and polls that a test ends. */
function setUp({ projects: ids = ['p', 'q'], owned = new Set(ids), ownerOf }: Given = {}) {
  const events: MonitorEvent[] = [];
  const observers: Observer[] = [];
  const polls: (PromiseWithResolvers<FinishedPoll | undefined> & {
    readonly id: string;
    readonly run: PollRun;
  })[] = [];
  const lastPollAt = new Map(ids.map((id) => [id, Date.now()]));
  const projects = new Map(ids.map((id) => [id, { ...PROJECT, id }]));
  let changeOwnership: (change: {
    readonly taken: readonly { readonly project: string }[];
  }) => void = () => {};
  const reporter = { start: vi.fn<() => void>(), stop: vi.fn<() => Promise<void>>() };
  const worker = {
    isConnected: () => true,
    ownerOf,
    onChange: (listener: typeof changeOwnership) => {
      changeOwnership = listener;
    },
    stop: vi.fn<(ended: Promise<unknown>) => Promise<void>>(),
  };
  const engine = {
    emit: (event: MonitorEvent) => events.push(event),
    observe: (observer: Observer) => observers.push(observer),
    mayPoll: (id: string) => owned.has(id),
    pauseOf: () => undefined,
    scheduleOf: ({ schedule }: typeof PROJECT) => schedule,
    poll: (id: string, run: PollRun) => {
      const poll = Promise.withResolvers<FinishedPoll | undefined>();
      polls.push({ ...poll, id, run });
      return poll.promise;
    },
    health: (id: string) => ({
      lastPollAt: lastPollAt.get(id),
      consecutiveFailures: id.startsWith('failing') ? 1 : 0,
    }),
    config: {
      jitterMs: 0,
      projects: [...projects.values()],
      service: { maxConcurrency: 4 },
    },
    projects,
    reporter,
    shutdown: { begin: vi.fn<(graceMs: number) => void>() },
    worker,
  };
  const scheduling = new Scheduling(engine as unknown as Engine, systemClock);
  scheduling.start();
  const emit = emitTo(observers, (error) => {
    throw error;
  });
  return { scheduling, engine, reporter, worker, polls, events, lastPollAt, emit, changeOwnership };
}

it('the first poll that begins after a pause ends it, not one that already ran', async () => {
  const { scheduling, engine, polls, emit, changeOwnership } = setUp({ projects: ['p'] });
  const pause = (isPaused: boolean) => {
    const pauses = { isPaused, maintenance: [] };
    engine.config.projects = engine.config.projects.map((project) => ({ ...project, pauses }));
    scheduling.apply();
  };
  const endsPause = () => polls.map(({ run }) => run.endsPause);
  await vi.advanceTimersByTimeAsync(10_000);
  pause(true);
  polls[0]?.resolve(FINISHED);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(endsPause()).toEqual([false]);
  pause(false);
  await turn();
  // It fails.
  polls[1]?.resolve(FINISHED);
  await vi.advanceTimersByTimeAsync(10_000);
  emit({ type: 'project.resumed', project: 'p', since: undefined, at: 0, transitions: 0 });
  polls[2]?.resolve(FINISHED);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(endsPause()).toEqual([false, true, true, false]);
  polls[3]?.resolve(FINISHED);

  // Another worker polls it first.
  pause(true);
  pause(false);
  changeOwnership({ taken: [{ project: 'p' }] });
  await vi.advanceTimersByTimeAsync(10_000);
  expect(endsPause().slice(4)).toEqual([false]);
});

it('a poll on request ends a pause, in which no poll is due', async () => {
  const { scheduling, engine, polls } = setUp({ projects: ['p'] });
  const { pauseOf } = engine;
  Object.assign(engine, { pauseOf: () => ({ until: undefined, polls: 'stop' }) });
  await vi.advanceTimersByTimeAsync(15_000);
  expect([polls.length, scheduling.next('p')]).toEqual([0, undefined]);
  Object.assign(engine, { pauseOf });
  expect(scheduling.next('p')).toBe(Date.parse('2026-11-21T10:00:20Z'));
  void scheduling.pollNow('p');
  expect(polls).toMatchObject([{ run: { endsPause: true } }]);
});

it('a scheduled run that comes due during a requested poll starts after it', async () => {
  const { scheduling, polls, events } = setUp({ projects: ['p'] });
  const requested = scheduling.pollNow('p');
  await vi.advanceTimersByTimeAsync(9800);
  expect(polls.length).toBe(1);

  polls[0]?.resolve(FINISHED);
  expect(await requested).toEqual({ polled: [FINISHED], pending: 0 });
  await turn();

  expect(polls.length).toBe(2);
  expect(await scheduling.pollNow('p')).toMatchObject({ refusal: 'running' });
  expect([polls.length, events]).toEqual([2, []]);
  void scheduling.stop(0);
});

it.each([
  ['polls', 'reports'],
  ['reports', 'polls'],
])(
  'a stop begins no poll, and gives up the projects once %s and then %s have ended',
  async (first) => {
    const { scheduling, engine, reporter, worker, polls } = setUp({ projects: ['p'] });
    const reported = Promise.withResolvers<void>();
    reporter.stop.mockReturnValue(reported.promise);
    const requested = scheduling.pollNow('p');
    // A run that waits for the requested poll does not begin after the stop.
    await vi.advanceTimersByTimeAsync(9800);
    expect([reporter.start.mock.calls.length, scheduling.isActive()]).toEqual([1, true]);
    const onStopped = vi.fn<() => void>();
    const stopped = scheduling.stop(8000).then(onStopped);
    expect(engine.shutdown.begin).toHaveBeenCalledExactlyOnceWith(8000);
    expect(scheduling.isActive()).toBe(false);
    const onEnded = vi.fn<() => void>();
    void worker.stop.mock.calls[0]?.[0].then(onEnded);
    const endPoll = () => polls[0]?.resolve(FINISHED);
    await turn();
    if (first === 'polls') endPoll();
    else reported.resolve();
    await turn();
    expect([onEnded.mock.calls, onStopped.mock.calls]).toEqual([[], []]);

    endPoll();
    reported.resolve();
    await Promise.all([requested, stopped]);
    expect(onEnded).toHaveBeenCalledOnce();
    expect(await scheduling.pollNow('p')).toEqual({
      refusal: 'busy',
      error: 'evalwatch is stopping',
    });
    expect(polls.length).toBe(1);
  },
);

it('is active only while its worker is connected', () => {
  const { scheduling, worker } = setUp();
  worker.isConnected = () => false;
  expect(scheduling.isActive()).toBe(false);
  void scheduling.stop(0);
});

describe('a poll on request', () => {
  it('polls one project, or all that this worker owns', async () => {
    const { scheduling, polls } = setUp({ projects: ['a', 'b', 'c'], owned: new Set(['a', 'b']) });
    const finished = (id: string) => ({ project: id }) as FinishedPoll;
    const endAll = async () => {
      await turn();
      for (const { id, resolve } of polls) resolve(finished(id));
    };
    const one = scheduling.pollNow('a');
    await endAll();
    expect(await one).toEqual({ polled: [finished('a')], pending: 0 });
    const all = scheduling.pollNow(undefined);
    await endAll();
    expect(await all).toEqual({ polled: [finished('a'), finished('b')], pending: 0 });
    void scheduling.stop(0);
  });

  it.each([
    ['a project that is not configured', 'x', {}, 'unknown', 'project "x" is not in'],
    [
      'a project of another worker',
      'p',
      { owned: new Set<string>(), ownerOf: async (): Promise<string> => 'w2' },
      'elsewhere',
      'polled by worker w2',
    ],
    [
      'a project whose owner the store does not say',
      'p',
      { owned: new Set<string>(), ownerOf: () => Promise.reject(new StoreError('io', 'gone')) },
      'elsewhere',
      'not polled by this worker',
    ],
    [
      'all projects of a worker without any',
      undefined,
      { owned: new Set<string>() },
      'elsewhere',
      'none of',
    ],
  ] as const)('is refused for %s', async (_, project, given, refusal, words) => {
    const { scheduling } = setUp(given);
    const error = expect.stringContaining(words) as unknown;
    expect(await scheduling.pollNow(project)).toEqual({ refusal, error });
    void scheduling.stop(0);
  });

  it('is refused for a project that is being polled, or that is lost meanwhile', async () => {
    const { scheduling, polls } = setUp();
    const first = scheduling.pollNow('p');
    expect(await scheduling.pollNow('p')).toMatchObject({ refusal: 'running' });
    polls[0]?.resolve(undefined);
    const error = expect.stringContaining('was not polled') as unknown;
    expect(await first).toEqual({ refusal: 'elsewhere', error });
    void scheduling.stop(0);
  });

  it('returns after ten seconds while its polls run; a 9th single one and a second one of all are refused', async () => {
    const ids = Array.from({ length: 9 }, (_, index) => `p${index}`);
    const { scheduling, engine, polls } = setUp({ projects: ids });
    // Nothing but requests.
    engine.config.projects.length = 0;
    scheduling.apply();
    const single = ids.map((id) => scheduling.pollNow(id));
    expect(await single[8]).toMatchObject({ refusal: 'busy' });
    const all = scheduling.pollNow(undefined);
    await vi.advanceTimersByTimeAsync(10_000);
    const pending = { polled: [], pending: 1 };
    expect(await Promise.all(single.slice(0, 8))).toEqual(Array.from({ length: 8 }, () => pending));
    // Eight are being polled already, and are left out.
    expect(await all).toEqual(pending);
    expect(polls.map(({ id }) => id)).toEqual(ids);
    expect(await scheduling.pollNow(undefined)).toMatchObject({ refusal: 'running' });
    for (const poll of polls) poll.resolve(undefined);
    await turn();
    const again = scheduling.pollNow(undefined);
    await turn();
    // Half of the slots of the service are left to the schedule.
    expect(polls.length).toBe(9 + 2);
    void scheduling.stop(0);
    for (const poll of polls) poll.resolve(undefined);
    expect(await again).toEqual({ polled: [], pending: 0 });
  });

  it('skips projects that the schedule has polled since', async () => {
    const { scheduling, polls, lastPollAt } = setUp();
    for (const id of lastPollAt.keys()) lastPollAt.set(id, Number.MAX_SAFE_INTEGER);
    expect(await scheduling.pollNow(undefined)).toEqual({ polled: [], pending: 0 });
    expect(polls).toEqual([]);
    void scheduling.stop(0);
  });
});

it('changes of ownership in one turn of the event loop are applied once, in the next', async () => {
  const owned = new Set<string>();
  const { polls, scheduling, changeOwnership } = setUp({ owned });
  const apply = vi.spyOn(scheduling, 'apply');
  owned.add('p').add('q');
  for (let change = 0; change < 1000; change += 1) changeOwnership({ taken: [] });
  expect(apply).not.toHaveBeenCalled();
  await turn();
  await vi.advanceTimersByTimeAsync(10_000);
  expect([apply.mock.calls.length, polls.length]).toEqual([1, 2]);

  owned.delete('p');
  changeOwnership({ taken: [] });
  await turn();
  for (const poll of polls) poll.resolve(FINISHED);
  await vi.advanceTimersByTimeAsync(10_000);

  expect(apply.mock.calls.length).toBe(2);
  expect(polls.map(({ id }) => id).toSorted()).toEqual(['p', 'q', 'q']);
  void scheduling.stop(0);
});

describe('a schedule with more than 1000 healthy projects that are due', () => {
  const healthy = Array.from({ length: 1003 }, (_, index) => `p${index}`);
  const all = [...healthy, 'failing'];
  const dueSetUp = async () => {
    const set = setUp({ projects: all });
    await vi.advanceTimersByTimeAsync(10_000);
    return { ...set, begun: () => set.polls.map(({ id }) => id) };
  };

  it('begins the polls of the first 1000, and those of failing projects', async () => {
    const { scheduling, begun } = await dueSetUp();
    expect(begun().toSorted()).toEqual([...healthy.slice(0, 1000), 'failing'].toSorted());
    void scheduling.stop(0);
  });

  it('begins the next poll when one sends its first request, or ends without one', async () => {
    const { scheduling, polls, events, emit, begun } = await dueSetUp();
    emit({ type: 'scheduler.started_poll', project: 'p7', lagMs: 0 });
    await vi.advanceTimersByTimeAsync(0);
    expect(begun().slice(1001)).toEqual(['p1000']);
    // p7 has made room already.
    polls.find(({ id }) => id === 'p7')?.resolve(FINISHED);
    await vi.advanceTimersByTimeAsync(0);
    expect(begun().slice(1001)).toEqual(['p1000']);

    polls.find(({ id }) => id === 'p8')?.resolve(undefined);
    await vi.advanceTimersByTimeAsync(0);
    expect(begun().slice(1001)).toEqual(['p1000', 'p1001']);
    expect(await scheduling.pollNow('p1002')).toMatchObject({ refusal: 'running' });
    expect(events).toEqual([]);
    void scheduling.stop(0);
  });
});
