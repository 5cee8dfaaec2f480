import { setTimeout } from 'node:timers/promises';
import { systemClock } from '../../src/app/clock.ts';
import { failureFields, promptFields, transitionFields } from '../../src/rows/fields.ts';
import { openPostgresReader } from '../../src/store/postgres/postgres-reader.ts';
import type { JournalEntry } from '../../src/simulator/world/journal.ts';
import type { RequestLog } from '../../src/simulator/request-log.ts';
import { startSimulator } from '../../src/simulator/server.ts';
import { differences } from '../../test/support/oracle.ts';
import { storedErrorTotals } from '../../test/support/oracle/error-totals.ts';
import {
  type FailureRow,
  type StatusRow,
  type TimeSpan,
  type TransitionRow,
} from '../../test/support/oracle/observation.ts';
import { checkAgainstWorld } from '../../test/support/soak/at-rest.ts';
import { KEY, makeProjects, MISSING_AFTER } from '../../test/support/soak/configuration.ts';
import { isServedInPeace } from '../../test/support/soak/peace.ts';
import { createLivingWorld } from '../../test/support/soak/living-world.ts';
import { runCommand } from '../../test/support/soak/processes.ts';
import { temporaryDirectory } from '../../test/support/temporary.ts';
import { type Crew, createCrew, scrapeOf } from './crew.ts';
import { type Servers, startServers } from './servers.ts';

export interface SceneOptions {
  readonly seed: number;
  readonly source: string | undefined;
  readonly projects: number;
  /** Seconds between two polls of a project. */
  readonly every: number;
  readonly lease: string;
  readonly maxRequestsPerSecond?: number | undefined;
  /** Whether the database has a standby. Default false. */
  readonly hasStandby?: boolean;
  /** Whether prompts that ended run again. Default true. */
  readonly reruns?: boolean;
}

/** A lively world, a service that shows it, a PostgreSQL, and workers that share it. */
export interface Scene extends AsyncDisposable {
  readonly crew: Crew;
  readonly servers: Servers;
  readonly projects: number;
  readonly intervalMs: number;
  /** Entries of every served listing. */
  readonly journal: readonly JournalEntry[];
  /** Most recent requests. */
  readonly requests: RequestLog['recent'];
  /** Delays each answer of the service until the returned function is called. */
  delayAnswers(ms: number): () => void;
  /** Marks the time until the returned function is called: the database may be away. */
  trouble(): () => void;
  /** Lets everything come to rest, stops the workers, and compares their results with what was served. */
  judge(): Promise<{
    readonly differences: readonly string[];
    readonly transitions: number;
    readonly failures: number;
    /** Number of transitions without a line, all of killed workers. */
    readonly untold: number;
    /** Number of repeated lines of failures. */
    readonly repeated: number;
  }>;
}

const SCRAPES = 20;

export async function createScene(options: SceneOptions): Promise<Scene> {
  const { seed, source, every, lease, maxRequestsPerSecond, hasStandby = false, reruns } = options;
  const intervalMs = every * 1000;
  await using opened = new AsyncDisposableStack();
  const directory = opened.use(await temporaryDirectory());
  const servers = opened.use(await startServers(hasStandby));
  const { port } = servers.primary();
  const projects = makeProjects(options.projects);
  const living = createLivingWorld(
    projects.map(({ id }) => id),
    seed,
    { promptsPerProject: 20, reruns },
  );
  const journal: JournalEntry[] = [];
  const simulator = await startSimulator({
    world: living.world,
    keys: KEY,
    faultSeed: seed,
    journal: (entry) => journal.push(entry),
  });
  opened.defer(() => simulator.close());
  const crew = opened.use(
    await createCrew({
      directory: directory.path,
      source,
      serviceUrl: simulator.url,
      projects,
      lease,
      schedule: every === 1 ? '* * * * * *' : `*/${every} * * * * *`,
      maxRequestsPerSecond,
      database: { host: '127.0.0.1', port, url: (behind) => servers.url(behind) },
    }),
  );
  living.start();
  opened.defer(() => living.stop());
  const troubles: TimeSpan[] = [];

  async function readRows(from: string) {
    const reader = await openPostgresReader({ clock: systemClock, url: from });
    await using closing = new AsyncDisposableStack();
    closing.defer(() => reader.close());
    const [transitions, failures, statuses, snapshot] = await Promise.all([
      reader.transitions({}),
      reader.failures({}),
      reader.statuses({}),
      reader.snapshot(),
    ]);
    return {
      transitions: transitions.map(transitionFields) as unknown as readonly TransitionRow[],
      failures: failures.map(failureFields) as unknown as readonly FailureRow[],
      statuses: statuses.map((row) =>
        promptFields(row, undefined),
      ) as unknown as readonly StatusRow[],
      errorTotals: storedErrorTotals(snapshot),
    };
  }

  /** Returns the series of all members together, once exactly one of them exports each project. */
  async function scrapeMembers() {
    for (let tries = 1; ; tries += 1) {
      const scrapes = await Promise.all(
        crew.members.map(async (member) => (await scrapeOf(member)).samples),
      );
      const found = checkOwners(
        scrapes,
        projects.map(({ id }) => id),
      );
      if (found.length === 0 || tries === SCRAPES) {
        return { samples: new Map(scrapes.flatMap((one) => [...one])), differences: found };
      }
      await setTimeout(500);
    }
  }

  async function judge() {
    living.stop();
    const found: string[] = [];
    // Longer than an interval after the last move.
    await setTimeout(intervalMs + 1000);
    if (!(await isServedInPeace(journal, projects)))
      found.push('some listings are not asked for any more');
    const { samples, ...scraped } = await scrapeMembers();
    found.push(...scraped.differences);
    await Promise.all(crew.members.map((member) => crew.leave(member)));
    // Retries what is pending, now that nothing moves.
    const poll = await runCommand('poll', crew.config, source);
    if (poll.code !== 0) found.push(`poll ended with ${poll.code}: ${poll.output.slice(0, 2000)}`);
    const runs = [...crew.runs, { ...poll.run, endedAt: Date.now() }];
    const rows = await readRows(servers.url(port));
    const observation = {
      journal,
      key: KEY,
      missingAfter: MISSING_AFTER,
      projects,
      runs,
      troubles,
      ...rows,
      samples,
      gave: living.gave,
    };
    found.push(
      ...crew.differences,
      ...differences(observation),
      ...checkAgainstWorld(observation, living),
    );
    const lines = runs.flatMap((run) => run.lines);
    const told = new Set(
      lines.map((line) => line.event?.endsWith('.transition') && line.transition_id),
    );
    const failureLines = lines.filter(({ event }) => event === 'prompt.failed');
    return {
      differences: found,
      transitions: rows.transitions.length,
      failures: rows.failures.length,
      untold: rows.transitions.filter((row) => !told.has(row.transition_id)).length,
      repeated: failureLines.length - new Set(failureLines.map((line) => line.transition_id)).size,
    };
  }

  const held = opened.move();
  return {
    crew,
    servers,
    projects: projects.length,
    intervalMs,
    journal,
    get requests() {
      return simulator.requests.recent;
    },
    delayAnswers: (ms) => {
      simulator.faults.set([{ fault: { kind: 'delay', ms } }]);
      return () => simulator.faults.clear();
    },
    trouble: () => {
      const span = { from: Date.now() - intervalMs - 10_000, to: Infinity };
      troubles.push(span);
      return () => {
        span.to = Date.now();
      };
    },
    judge,
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}

/** Checks that each project has series from exactly one worker, and that each worker reports how many it shows. */
function checkOwners(
  scrapes: readonly ReadonlyMap<string, number>[],
  projects: readonly string[],
): readonly string[] {
  const shown = scrapes.map(
    (samples) =>
      new Set([...samples.keys()].map((series) => /[{,]project="([^"]+)"/.exec(series)?.[1])),
  );
  const owners = projects.flatMap((project) => {
    const count = shown.filter((some) => some.has(project)).length;
    return count === 1 ? [] : [`${count} workers have series of ${project}`];
  });
  const counts = scrapes.flatMap((samples, index) => {
    const count = projects.filter((project) => shown[index]?.has(project)).length;
    const said = samples.get('evalwatch_worker_projects');
    return said === count ? [] : [`a worker says that it has ${said} projects, and shows ${count}`];
  });
  return [...owners, ...counts];
}
