import { expect, it, vi } from 'vitest';
import type { Engine } from '../../../src/app/engine.ts';
import { createPollNow } from '../../../src/app/poll-now.ts';
import type { Scheduling } from '../../../src/app/scheduling.ts';
import { StoreError } from '../../../src/monitor/errors.ts';
import type { FinishedPoll } from '../../../src/monitor/events.ts';
import { PATIENCE } from '../../support/evalwatch.ts';
import { fakeClock } from '../../support/monitor.ts';

interface Changes {
  readonly ids?: readonly string[];
  readonly owned?: readonly string[];
  readonly ownerOf?: () => Promise<string | undefined>;
  readonly isPolling?: (id: string) => boolean;
  readonly pollNow?: (id: string) => Promise<FinishedPoll | undefined>;
  readonly lastPollAt?: () => number | undefined;
}

const finished = (id: string) => ({ project: id }) as FinishedPoll;

function setUp({
  ids = ['a', 'b'],
  owned = ids,
  ownerOf = async () => 'w2',
  isPolling = () => false,
  pollNow = async (id) => finished(id),
  lastPollAt = () => undefined,
}: Changes = {}) {
  const poll = vi.fn<(id: string) => Promise<FinishedPoll | undefined>>(pollNow);
  const engine = {
    config: () => ({ service: { maxConcurrency: 4 } }),
    projects: () => new Map(ids.map((id) => [id, { id }])),
    mayPoll: (id: string) => owned.includes(id),
    health: () => ({ lastPollAt: lastPollAt() }),
    worker: { ownerOf },
  } as unknown as Engine;
  const scheduling = { pollNow: poll, isPolling } as unknown as Scheduling;
  const clock = fakeClock();
  return { pollNow: createPollNow(engine, scheduling, clock, 20), poll, clock };
}

it('a request polls one project, or all that this worker owns', async () => {
  const { pollNow } = setUp({ ids: ['a', 'b', 'c'], owned: ['a', 'b'] });
  expect(await pollNow('a')).toEqual({ polled: [finished('a')], pending: 0 });
  expect(await pollNow(undefined)).toEqual({ polled: [finished('a'), finished('b')], pending: 0 });
});

it.each([
  ['a project that is not configured', 'x', {}, 'unknown', 'project "x" is not in'],
  ['a project of another worker', 'a', { owned: [] }, 'elsewhere', 'polled by worker w2'],
  [
    'a project whose owner the store does not say',
    'a',
    { owned: [], ownerOf: () => Promise.reject(new StoreError('io', 'gone')) },
    'elsewhere',
    'not polled by this worker',
  ],
  ['all projects of a worker without any', undefined, { owned: [] }, 'elsewhere', 'none of'],
  ['a project that is being polled', 'a', { isPolling: () => true }, 'running', 'already running'],
  [
    'a project that is lost meanwhile',
    'a',
    { pollNow: async () => undefined },
    'elsewhere',
    'was not polled',
  ],
] as const)('a request is refused for %s', async (_, project, changes, refusal, words) => {
  const { pollNow } = setUp(changes);
  const error = expect.stringContaining(words) as unknown;
  expect(await pollNow(project)).toEqual({ refusal, error });
});

it('a request returns while its polls run; a 9th single one and a second one of all are refused', async () => {
  const release = Promise.withResolvers<undefined>();
  const ids = Array.from({ length: 9 }, (_, index) => `p${index}`);
  const { pollNow, poll } = setUp({ ids, pollNow: () => release.promise });
  const single = await Promise.all(ids.map((id) => pollNow(id)));
  expect(single.slice(0, 8)).toEqual(Array.from({ length: 8 }, () => ({ polled: [], pending: 1 })));
  expect(single[8]).toMatchObject({ refusal: 'busy' });
  expect(await pollNow(undefined)).toEqual({ polled: [], pending: 9 });
  // Half of the slots of the service are left to the schedule.
  expect(poll).toHaveBeenCalledTimes(8 + 2);
  expect(await pollNow(undefined)).toMatchObject({ refusal: 'running' });
  release.resolve(undefined);
  await vi.waitFor(
    async () => expect(await pollNow(undefined)).toMatchObject({ pending: 0 }),
    PATIENCE,
  );
});

it('a request skips projects that the schedule has polled since', async () => {
  const { pollNow, poll } = setUp({ lastPollAt: () => Number.MAX_SAFE_INTEGER });
  expect(await pollNow(undefined)).toEqual({ polled: [], pending: 0 });
  expect(poll).not.toHaveBeenCalled();
});
