import { World } from '../../src/simulator/world/world.ts';
import { randomNumbers } from '../random.ts';
import { assemble, openBackend } from './assembly.ts';
import { ALL_PROJECTS } from './configuration.ts';
import { type Course, createCourse } from './course.ts';
import { DAY, HOUR, MINUTE, SECOND } from './durations.ts';
import { type Endings, MAX_STOP_MS } from './endings.ts';
import { createConditions } from './faults/conditions.ts';
import { createDatabaseClock } from './faults/database-clock.ts';
import { startDisturbances } from './faults/disturbances.ts';
import { createHosts, type Host } from './hosts.ts';
import { createKernel } from './kernel.ts';
import { START } from './machine.ts';
import { loadSources } from './process.ts';
import { HOURS, type Scenario, sizeOf } from './scenario.ts';

/** Time without faults at the end, in which everything that is pending has to end. */
const CALM_MS = 45 * MINUTE;
/** Lengths of leases, ms, each as often as its share of the runs. Short ones end often, long ones take few beats. */
const LEASES_MS = [
  ...Array.from({ length: 8 }, () => 60 * SECOND),
  ...Array.from({ length: 4 }, () => 30 * SECOND),
  ...Array.from({ length: 3 }, () => 15 * SECOND),
  5 * SECOND,
];

export interface RunOptions {
  readonly source: string;
  readonly scenario: Scenario;
}

export interface Outcome {
  readonly faults: readonly string[];
  /** Hash of the whole trace. */
  readonly digest: string;
  readonly trace: readonly string[];
  readonly days: number;
  readonly acts: Readonly<Record<string, number>>;
  readonly listings: number;
  readonly moves: number;
  readonly failures: number;
}

/** Simulates one daemon with SQLite, or several workers with PostgreSQL. The seed decides everything. */
export async function simulate(options: RunOptions): Promise<Outcome> {
  const { source, scenario } = options;
  const { part, seed } = scenario;
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
  const databaseClock = createDatabaseClock(course);
  const surroundings = { course, sources, world, conditions, databaseClock };
  await using backend = await openBackend(source, surroundings);
  const parts = assemble({ seed, hosts, backend, ...surroundings });
  const { endings, failovers, outages, rollouts } = parts;

  for (const host of hosts) course.later(kernel.random() * SECOND, () => parts.start(host));
  turnWorld(course, world, durationMs - CALM_MS / 2);
  startDisturbances({ course, pick, hosts, conditions, databaseClock, ...parts });
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
  failovers.end();
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
    ...parts.oracle.figures(),
  };
}

function createWorld({ kernel, projects }: Course, seed: number): World {
  return new World({
    now: () => START + kernel.now(),
    seed,
    projects: projects.map(({ id }) => id),
    promptsPerProject: 8,
    datasetsPerProject: 1,
    rates: { start: 0.2, finish: 0.15, fail: 0.4, arrivals: 0.1, comeBack: 0.3 },
  });
}

/** Advances the world until the middle of the calm, so that everything can end. */
function turnWorld(course: Course, world: World, until: number): void {
  const { kernel } = course;
  if (course.isCalm() && kernel.now() > until) return;
  world.step();
  kernel.after(kernel.between(20 * SECOND, 2 * MINUTE), () => turnWorld(course, world, until));
}

/** Stops the processes one after the other, as long as nothing is found. */
async function stopAll(
  { kernel, faults, fault }: Course,
  hosts: readonly Host[],
  endings: Pick<Endings, 'stop'>,
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
