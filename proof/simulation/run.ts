import { answerTo } from '../../src/simulator/service.ts';
import { RandomWorld } from '../random-world.ts';
import { randomNumbers } from '../random.ts';
import { createCourse, createHosts } from './course.ts';
import { createWallClocks } from './faults/clocks.ts';
import { createFailovers } from './faults/failovers.ts';
import { MAX_STOP_MS, createEndings, startDisturbances } from './faults/processes.ts';
import { createConditions, createOutages, createPartitions } from './faults/store.ts';
import { createKernel } from './kernel.ts';
import { START } from './machine.ts';
import { createAnswers } from './network.ts';
import type { Course, Host, Simulation } from './parts.ts';
import { createPostgresBackend } from './postgres/backend.ts';
import { seenKinds } from './postgres/sender.ts';
import { createStarts, loadSources } from './process.ts';
import { createRollouts } from './rollouts.ts';
import { createCalm } from './rules/calm.ts';
import { createOracle } from './rules/oracle.ts';
import { createReceivers } from './rules/receivers.ts';
import { createDeadLeases, createRhythm } from './rules/rhythm.ts';
import { createRequestRate, createWatch } from './rules/watch.ts';
import {
  ALL_PROJECTS,
  DAY,
  HOUR,
  HOURS,
  MINUTE,
  SECOND,
  type Part,
  sizeOf,
  KEY,
} from './scenario.ts';
import { createSqliteBackend } from './sqlite.ts';

/** Time without faults at the end, in which everything that is pending has to end. */
const CALM_MS = 45 * MINUTE;
/** Lengths of leases, ms, each as often as its share of the runs. Short ones end often, long ones take few beats. */
const LEASES_MS = [
  ...Array.from({ length: 8 }, () => 60 * SECOND),
  ...Array.from({ length: 4 }, () => 30 * SECOND),
  ...Array.from({ length: 3 }, () => 15 * SECOND),
  5 * SECOND,
];

export interface Outcome {
  readonly faults: readonly string[];
  /** Hash of the times of all events. */
  readonly digest: number;
  readonly trace: readonly string[];
  readonly days: number;
  readonly acts: Readonly<Record<string, number>>;
  /** Kinds of the statements that this process has sent, in this run or an earlier one. */
  readonly statements: readonly string[];
  readonly listings: number;
  readonly moves: number;
  readonly failures: number;
  readonly finishes: number;
  readonly messages: number;
  readonly repetitions: number;
}

/** Simulates one daemon with SQLite, or several workers with PostgreSQL. The seed decides everything. */
export async function simulate(source: string, part: Part, seed: number): Promise<Outcome> {
  const { projects, isQuiet } = sizeOf(seed);
  const durationMs = HOURS * HOUR;
  // A generator of its own, so that a run without one kind of faults has the others at the same times.
  const pick = randomNumbers(~seed);
  const kernel = createKernel(randomNumbers(seed));
  const sources = await loadSources(source);
  const hosts = createHosts(part === 'daemon' ? ['daemon'] : ['a', 'b', 'c']);
  const course = createCourse({
    kernel,
    projects: ALL_PROJECTS.slice(0, projects),
    isShared: hosts.length > 1,
    leaseMs: LEASES_MS[Math.floor(pick() * LEASES_MS.length)] ?? 0,
  });
  const world = createWorld(course, seed);
  const conditions = createConditions(course);
  const store = { kernel, source, weather: conditions.store };
  const { leaseMs, fault } = course;
  await using backend = course.isShared
    ? await createPostgresBackend({ ...store, leaseMs, fault })
    : await createSqliteBackend(store);
  const given = { course, sources, hosts, world, backend, conditions };
  const parts = assemble(given, seed);
  const { endings, outages, rollouts } = parts;

  for (const host of hosts) course.later(kernel.random() * SECOND, () => parts.start(host));
  turnWorld(course, world, durationMs - CALM_MS / 2);
  startDisturbances(parts, pick);
  parts.rhythm.check();
  if (isQuiet) {
    course.beginCalm();
    parts.calm.begin();
  } else rollouts.start();
  for (let at = 0; at < durationMs - CALM_MS && course.faults().length === 0; at += HOUR) {
    await kernel.runUntil(Math.min(at + HOUR, durationMs - CALM_MS));
  }
  course.beginCalm();
  parts.calm.begin();
  outages.end();
  conditions.calmStore();
  if (course.faults().length === 0) {
    course.catchUp();
    rollouts.end();
    await kernel.runUntil(durationMs - hosts.length * MAX_STOP_MS);
    if (course.faults().length === 0) parts.calm.end();
  }
  await stopAll(course, hosts, endings);
  for (const { life } of hosts) life?.access.kill();
  return {
    faults: course.faults(),
    digest: kernel.digest(),
    trace: kernel.trace(),
    days: kernel.now() / DAY,
    acts: course.acts(),
    statements: seenKinds(),
    ...parts.oracle.figures(),
    ...parts.receivers.figures(),
  };
}

function createWorld({ kernel, projects }: Course, seed: number): RandomWorld {
  return new RandomWorld({
    now: () => START + kernel.now(),
    seed,
    projects: projects.map(({ id }) => id),
    promptsPerProject: 8,
    datasetsPerProject: 0,
    experiments: 3,
    rates: {
      start: 0.2,
      finish: 0.15,
      fail: 0.4,
      rerun: 0.02,
      arrivals: 0.1,
      comeBack: 0.3,
      dataset: 0,
    },
  });
}

/** Advances the world until the middle of the calm, so that everything can end. */
function turnWorld(course: Course, world: RandomWorld, until: number): void {
  const { kernel } = course;
  if (course.isCalm() && kernel.now() > until) return;
  world.step();
  kernel.after(kernel.between(20 * SECOND, 2 * MINUTE), () => turnWorld(course, world, until));
}

/** Stops the processes one after the other, as long as nothing is found. */
async function stopAll(
  { kernel, faults, fault }: Course,
  hosts: readonly Host[],
  endings: Simulation['endings'],
): Promise<void> {
  for (const [index, { name, life }] of hosts.entries()) {
    if (faults().length > 0) break;
    if (life?.stop === undefined) fault(`no process runs on ${name} at the end`);
    else {
      const end = index === hosts.length - 1 ? 'last' : 'not the last';
      await kernel.runUntil(kernel.now() + MAX_STOP_MS, endings.stop(life, end));
    }
  }
}

/** Time within which a poll that is due has to begin. */
const PATIENCE_MS = 90 * SECOND;
/** The same with a database: a held-up statement times out after 30 s, then its outcome is queried until an answer comes. */
const PATIENCE_WITH_DATABASE_MS = 130 * SECOND;
/** Time after which others find that a lease has ended, in leases: one lease, one beat and a margin. */
const NOTICED_AFTER_LEASES = 4 / 3;

type Given = Pick<Simulation, 'course' | 'sources' | 'hosts' | 'world' | 'backend' | 'conditions'>;

/** Makes the parts that disturb and judge the processes. */
function assemble(given: Given, seed: number): Simulation {
  const { course, world } = given;
  const { isShared, leaseMs } = course;
  const patienceMs = isShared
    ? PATIENCE_WITH_DATABASE_MS + NOTICED_AFTER_LEASES * leaseMs
    : PATIENCE_MS;
  const simulation = { ...given, patienceMs } as Simulation;
  simulation.oracle = createOracle(simulation);
  simulation.requestRate = createRequestRate(simulation);
  simulation.watch = createWatch(simulation);
  simulation.rollouts = createRollouts(simulation, randomNumbers(seed ^ 0x5a5a5a5a));
  simulation.wallClocks = createWallClocks(simulation);
  simulation.partitions = createPartitions(simulation);
  simulation.deadLeases = createDeadLeases(simulation);
  simulation.rhythm = createRhythm(simulation);
  simulation.calm = createCalm(simulation);
  simulation.endings = createEndings(simulation);
  simulation.receivers = createReceivers(simulation);
  simulation.failovers = createFailovers(simulation);
  simulation.outages = createOutages(simulation);
  const keys = new Map([[KEY, undefined]]);
  const answer = createAnswers((request) => answerTo(request, world, keys));
  simulation.start = createStarts(simulation, answer);
  return simulation;
}
