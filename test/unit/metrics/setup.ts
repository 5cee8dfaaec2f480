import { systemClock } from '../../../src/app/clock.ts';
import { configApplied } from '../../support/expected.ts';
import { Metrics, type MetricsOptions } from '../../../src/metrics/metrics.ts';
import type { MonitorEvent } from '../../../src/monitor/events.ts';
import { NEVER_POLLED } from '../../../src/monitor/memory.ts';
import type {
  ListingSnapshot,
  PollHealth,
  ProjectSnapshot,
  StoreSnapshot,
} from '../../../src/monitor/ports/store.ts';
import { parseExposition } from './parse-exposition.ts';

export const START = 1_767_225_600_123;

export function listing(fields: Partial<ListingSnapshot> = {}): ListingSnapshot {
  return {
    counts: new Map(),
    missing: 0,
    goneTotal: 0,
    transitions: [],
    lastFailureAt: undefined,
    oldest: new Map(),
    isIdle: false,
    errors: [],
    ...fields,
  };
}

export function stored(project: string, fields: Partial<ProjectSnapshot> = {}): ProjectSnapshot {
  return { project, configuredAt: START, health: NEVER_POLLED, listings: new Map(), ...fields };
}

export function snapshotOf(
  projects: readonly ProjectSnapshot[],
  backlog: StoreSnapshot['backlog'] = { count: 0, oldestAt: undefined },
): StoreSnapshot {
  return { projects, backlog };
}

/** Returns a store of these projects. */
export function storeOf(projects: readonly ProjectSnapshot[]): MetricsOptions['store'] {
  return {
    snapshot: async () => snapshotOf(projects),
    size: async () => ({ database: 1, wal: 1 }),
  };
}

/** Creates metrics, by default over an empty store. They observe the events that they emit. */
export function setUp(options: Partial<MetricsOptions> = {}) {
  const emitted: MonitorEvent[] = [];
  const health = new Map<string, PollHealth>();
  const clock = { ...systemClock, time: START, now: () => clock.time, monotonic: () => 0 };
  const metrics: Metrics = new Metrics({
    version: '1.2.3',
    revision: 'abc',
    storeInfo: { engine: 'sqlite', version: '3.54.0' },
    logLines: { debug: 0, info: 0, warn: 0, error: 0 },
    clock,
    store: {
      snapshot: async () => snapshotOf([]),
      size: async () => ({ database: 4096, wal: 0 }),
    },
    schedule: () => undefined,
    isQuiet: () => false,
    expectationsOf: () => undefined,
    externalUrl: () => undefined,
    receivers: () => [],
    healthOf: (id) => health.get(id) ?? NEVER_POLLED,
    emit: (event) => {
      emitted.push(event);
      metrics.observe(event);
    },
    ...options,
  });
  const { observe } = metrics;
  // As in a daemon, the health of a project is that of its last poll.
  Object.assign(metrics, {
    observe: (event: MonitorEvent) => {
      if (event.type === 'poll.finished') health.set(event.project, event.health);
      observe(event);
    },
  });
  const configure = (...ids: readonly string[]) => metrics.observe(configApplied(ids));
  const render = async () => Buffer.concat(await metrics.render()).toString();
  /** Scrapes and validates. Returns every series by name and labels. */
  const scrape = async (): Promise<ReadonlyMap<string, number>> => {
    const families = parseExposition(await render());
    return new Map(families.values().flatMap(({ samples }) => samples));
  };
  return { metrics, health, clock, emitted, configure, render, scrape };
}
