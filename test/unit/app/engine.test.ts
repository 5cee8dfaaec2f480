import { expect, it, onTestFinished, vi } from 'vitest';
import { type EngineOptions, openEngine } from '../../../src/app/engine.ts';
import type { Config } from '../../../src/config/config.ts';
import type { Logger } from '../../../src/log/logger.ts';
import { NEVER_POLLED } from '../../../src/monitor/memory.ts';
import type { Store } from '../../../src/monitor/ports/store.ts';
import type { OpenStore } from '../../../src/store/open.ts';
import { fakeClock } from '../../support/monitor.ts';
import { LEASE, sharedRows } from '../coordination/world.ts';

it('a project is quiet in maintenance, and for as long after it as alerts look back', async () => {
  const store = {
    projects: async () => [],
    configureProjects: async () => {},
    close: async () => {},
  } as unknown as Store;
  const maintenance = [{ cron: '0 2 * * *', timezone: 'UTC', durationMs: 3_600_000 }];
  const pausesWith = (polls: 'stop' | 'continue') => {
    return { isPaused: false, maintenance: maintenance.map((each) => ({ ...each, polls })) };
  };
  const schedule = { schedule: '*/5 * * * *', timezone: 'UTC' };
  const clock = fakeClock();
  const config = {
    service: { baseUrl: 'http://127.0.0.1', maxRequestsPerSecond: 0 },
    projects: [
      { id: 'polled', ...schedule, pauses: pausesWith('continue') },
      { id: 'stopped', ...schedule, pauses: pausesWith('stop') },
    ],
    log: { level: 'info' },
  } as unknown as Config;
  const engine = await openEngine({
    config,
    logger: { setLevel: () => {} } as unknown as Logger,
    clock,
    outside: { openStore: async () => ({ store }) as OpenStore, service: {} },
  });
  onTestFinished(() => engine.close());
  await engine.configure(config);
  const quietAt = (time: string) => {
    clock.set(Date.parse(`2026-11-29T${time}Z`));
    return ['polled', 'stopped'].map((id) => engine.isQuiet(id));
  };
  expect(quietAt('01:59')).toEqual([false, false]);
  expect(quietAt('02:00')).toEqual([true, true]);
  // One without polls waits for the next one, for an interval and a minute.
  expect(quietAt('03:05')).toEqual([true, true]);
  expect(quietAt('03:07')).toEqual([true, false]);
  expect(quietAt('03:13')).toEqual([true, false]);
  expect(quietAt('03:14')).toEqual([false, false]);
});

it('the health of projects of other workers is that of the last snapshot that had them', async () => {
  const snapshot = vi.fn<Store['snapshot']>();
  const store = { snapshot, close: async () => {} } as unknown as Store;
  const shared = { name: 'w', leaseMs: LEASE, store, coordinator: sharedRows().coordinator };
  const opened = { store, shared, isInPlace: () => true } as unknown as OpenStore;
  const engine = await openEngine({
    config: { service: { baseUrl: 'http://127.0.0.1', maxRequestsPerSecond: 0 } } as Config,
    logger: {} as Logger,
    clock: fakeClock(),
    outside: { openStore: async () => opened, service: {} } as EngineOptions['outside'],
  } as EngineOptions);
  onTestFinished(() => engine.close());
  const read = async (ids: readonly string[], consecutiveFailures: number, project?: string) => {
    const health = { ...NEVER_POLLED, consecutiveFailures };
    const projects = ids.map((id) => ({
      project: id,
      configuredAt: 0,
      health,
      listings: new Map(),
    }));
    snapshot.mockResolvedValueOnce({ projects, backlog: { count: 0, oldestAt: undefined } });
    await engine.snapshot(project);
    expect(snapshot).toHaveBeenLastCalledWith(project);
  };
  const failures = () => ['a', 'b'].map((id) => engine.health(id)?.consecutiveFailures);
  expect(failures()).toEqual([undefined, undefined]);
  await read(['a', 'b'], 1);
  await read(['a'], 2, 'a');
  expect(failures()).toEqual([2, 1]);
  await read(['a'], 3);
  expect(failures()).toEqual([3, undefined]);
});
