import { createService } from '../../src/simulator/service.ts';
import { createKeyRing } from '../../src/simulator/world/key-ring.ts';
import type { World } from '../../src/simulator/world/world.ts';
import { randomNumbers } from '../random.ts';
import type { Backend } from './backend.ts';
import { createCalm } from './calm.ts';
import { configOf } from './configuration.ts';
import type { Course } from './course.ts';
import { createDeadLeases } from './dead-leases.ts';
import { SECOND } from './durations.ts';
import { createEndings } from './endings.ts';
import type { Conditions } from './faults/conditions.ts';
import type { DatabaseClock } from './faults/database-clock.ts';
import { createFailovers, type Failovers } from './faults/failovers.ts';
import { createOutages, type Outages } from './faults/outages.ts';
import { createPartitions } from './faults/partitions.ts';
import { createWallClocks } from './faults/wall-clocks.ts';
import { currentLife, type Host } from './hosts.ts';
import { createOracle, KEY } from './oracle.ts';
import { createPostgresBackend } from './postgres/backend.ts';
import type { Sources } from './process.ts';
import { createRequestRate, type RequestRate } from './request-rate.ts';
import { createRhythm } from './rhythm.ts';
import { createRollouts, type Rollouts } from './rollouts.ts';
import { createSetbacks } from './setbacks.ts';
import { createSqliteBackend } from './sqlite.ts';
import { createStarts } from './starts.ts';
import { ADDRESSES, createTwins } from './twins.ts';
import { createWatch, type Watch } from './watch.ts';

/** Time within which a poll that is due has to begin. */
const PATIENCE_MS = 90 * SECOND;
/** The same with a database: a held-up statement times out after 30 s, then its outcome is queried until an answer comes. */
const PATIENCE_WITH_DATABASE_MS = 130 * SECOND;
/** Time after which others find that a lease has ended, in leases: one lease, one beat and a margin. */
const NOTICED_AFTER_LEASES = 4 / 3;
/** Probability that a listing has an undocumented item. */
const ODD_LISTING = 0.1;

interface Given {
  readonly course: Course;
  readonly seed: number;
  readonly sources: Sources;
  readonly hosts: readonly Host[];
  readonly world: World;
  readonly backend: Backend;
  readonly conditions: Conditions;
  readonly databaseClock: DatabaseClock;
}

/** Opens the store of all processes: PostgreSQL for several, otherwise SQLite. */
export async function openBackend(
  source: string,
  { course, conditions, databaseClock }: Pick<Given, 'course' | 'conditions' | 'databaseClock'>,
): Promise<Backend> {
  const { kernel, isShared, leaseMs, fault } = course;
  const common = { kernel, source, weather: conditions.store };
  if (!isShared) return await createSqliteBackend(common);
  return await createPostgresBackend({
    ...common,
    leaseMs,
    fault,
    clockOffset: databaseClock.offset,
  });
}

/** Creates the parts that run, disturb and check a simulation, in the order in which they depend on each other. */
export function assemble(given: Given) {
  const { course, sources, hosts, world, backend, conditions, databaseClock } = given;
  const { kernel, projects, isShared, leaseMs, fault } = course;
  const patienceMs = isShared
    ? PATIENCE_WITH_DATABASE_MS + NOTICED_AFTER_LEASES * leaseMs
    : PATIENCE_MS;
  const service = createService({ world, keys: createKeyRing(KEY), etag: 'none' });
  const oracle = createOracle(world, {
    isShared,
    areLeasesDoubted: databaseClock.areLeasesDoubted,
  });
  const requestRate = createRequestRate(course);
  const setbacks = createSetbacks({ kernel, projects, patienceMs, fault });
  const watch = createWatch({
    kernel,
    leaseMs: isShared ? leaseMs : undefined,
    databaseClock,
    periodMs: (project) => projects.find(({ id }) => id === project)?.periodMs ?? 0,
    fault,
  });
  const rollouts = follow({
    ...given,
    watch,
    requestRate,
    reloading: (life) => outages.reloading(life),
    lastReload: (state) => failovers.reloading(state),
  });
  const wallClocks = createWallClocks({ course, hosts, setbacks, rollouts, conditions });
  const partitions = createPartitions(course, world);
  const deadLeases = createDeadLeases(kernel, hosts, partitions);
  const rhythm = createRhythm({
    course,
    hosts,
    patienceMs,
    conditions,
    partitions,
    deadLeases,
    wallClocks,
    rollouts,
  });
  const calm = createCalm(course, hosts, world);
  const endings = createEndings({
    course,
    backend,
    oracle,
    watch,
    requestRate,
    databaseClock,
    wallClocks,
    start: (host) => start(host),
  });
  const failovers = createFailovers({
    course,
    backend,
    hosts,
    oracle,
    watch,
    rollouts,
    conditions,
    endings,
  });
  const outages = createOutages({ course, backend, hosts, watch, conditions, endings });
  const start = createStarts({
    course,
    sources,
    answer: createTwins(service, () => kernel.chance(ODD_LISTING)),
    backend,
    oracle,
    watch,
    rhythm,
    calm,
    setbacks,
    requestRate,
    rollouts,
    conditions,
    failovers,
    outages,
    partitions,
    deadLeases,
    endings,
  });
  return {
    oracle,
    rollouts,
    rhythm,
    calm,
    endings,
    wallClocks,
    failovers,
    outages,
    partitions,
    start,
  };
}

/** Creates the changes of the configuration, which the processes follow. */
function follow({
  course,
  seed,
  hosts,
  backend,
  watch,
  requestRate,
  reloading,
  lastReload,
}: Given & {
  readonly watch: Watch;
  readonly requestRate: RequestRate;
  readonly reloading: Outages['reloading'];
  /** Called for the last reload of a change. */
  readonly lastReload: Failovers['reloading'];
}): Rollouts {
  const { kernel, fault, bug } = course;
  return createRollouts({
    kernel,
    pick: randomNumbers(seed ^ 0x5a5a5a5a),
    whole: configOf(course.isShared, course.projects),
    addresses: ADDRESSES,
    processes: () => hosts.flatMap(({ life }) => life ?? []),
    isRunning: (life) => {
      const own = currentLife(hosts, life);
      return own?.steadySince !== undefined && !own.machine.isPaused();
    },
    stored: () =>
      kernel.real(async () => {
        const reader = await backend.openReader();
        const { projects: stored } = await reader.snapshot();
        await reader.close();
        return stored.map(({ project }) => project);
      }),
    onReload: (life, state, isLast) => {
      const own = currentLife(hosts, life);
      if (own?.steadySince !== undefined) own.steadySince = kernel.now();
      if (own !== undefined) watch.reloaded(own.machine.name);
      if (state === 'begins') {
        course.act('reload');
        requestRate.reloading();
        if (own !== undefined) reloading(own);
      } else course.disturbed();
      if (isLast) lastReload(state);
    },
    fault,
    onError: bug,
  });
}
