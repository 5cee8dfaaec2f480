import { dirname, join } from 'node:path';
import type { FaultRule } from '../../../src/simulator/faults/fault-plan.ts';
import type { JournalEntry } from '../../../src/simulator/world/journal.ts';
import { startSimulator } from '../../../src/simulator/server.ts';
import { openReader } from '../../../src/store/sqlite/sqlite-reader.ts';
import { compare } from '../oracle.ts';
import { storedErrorTotals } from '../oracle/error-totals.ts';
import {
  type Before,
  type FailureRow,
  type Observation,
  type Run,
  type StatusRow,
  type TransitionRow,
} from '../oracle/observation.ts';
import { randomNumbers } from '../../../proof/random.ts';
import { temporaryDirectory } from '../temporary.ts';
import { checkAgainstWorld } from './at-rest.ts';
import { KEY, makeProjects, MISSING_AFTER, writeConfiguration } from './configuration.ts';
import { createDisturbance, type Disturbed, type Part, type Trouble } from './disturbance.ts';
import { createLivingWorld } from './living-world.ts';
import { isServedInPeace } from './peace.ts';
import { runCommand } from './processes.ts';
import { reloadAgainAndAgain, type ReloadOptions, STRANGER } from './reloads.ts';
import { type Life, watchDaemons, type WatchOptions } from './watch.ts';

export interface SoakOptions extends WatchOptions {
  /** Parts that run one after the other on the same store, each compared at its end. */
  readonly parts: readonly Part[];
  readonly faults: readonly FaultRule[];
  /** Seed of the world, the faults, and the order and pauses of kills and disk failures. */
  readonly seed: number;
  readonly projects: number;
  readonly promptsPerProject?: number;
  /** See {@link createLivingWorld}. */
  readonly pace?: number;
  /** Makes a daemon's disk fail; without it disks do not fail. */
  readonly trouble?: ((pid: number) => Trouble) | undefined;
  /** Directory of the store; by default a new one. */
  readonly directory?: string;
  /** Called with a line after each part. */
  readonly print?: (line: string) => void;
}

export interface SoakReport {
  readonly differences: readonly string[];
  /** Everything recorded and logged; the journal and the lines of polls are those of the last part. */
  readonly observation: Observation;
  readonly lives: readonly Life[];
  /** Listings that were served whole. */
  readonly listings: number;
  readonly comparisons: number;
  readonly troubles: number;
}

const TIMEOUT = '5s';
/** Timeout of a poll of all projects at the same time, on a machine that may be busy. */
const TIMEOUT_OF_ALL_AT_ONCE = '2m';

/**
 * Runs the daemon against a changing world and a faulty service, while it is killed and its disk fails. At the end of each
 * part everything comes to rest, and what it recorded, showed and logged is compared with what it was served. Ends after the
 * first part with a difference.
 */
export async function soak(options: SoakOptions): Promise<SoakReport> {
  const { parts, faults, seed, source, print = () => {} } = options;
  await using temporary = await temporaryDirectory();
  const { directory = temporary.path } = options;
  await using opened = new AsyncDisposableStack();
  const projects = makeProjects(options.projects);
  const ids = projects.map(({ id }) => id);
  const living = createLivingWorld(ids, seed, options);
  const journal: JournalEntry[] = [];
  const simulator = await startSimulator({
    world: living.world,
    keys: KEY,
    faultSeed: seed,
    journal: (entry) => journal.push(entry),
  });
  opened.defer(() => simulator.close());
  const maxConcurrency = Math.min(256, 8 + 2 * projects.length);
  const configure: ReloadOptions['configure'] = (watched, settings) =>
    writeConfiguration(directory, simulator.url, watched, {
      timeout: TIMEOUT,
      maxConcurrency,
      ...settings,
    });
  const config = await configure(projects, {});
  const watch = opened.use(watchDaemons(config, options));
  opened.defer(() => living.stop());
  const disturb = createDisturbance(watch, journal, randomNumbers(seed), options.trouble);

  /** Runs a part with its faults, kills and disk failures, then waits for undisturbed listings of each kind. */
  async function live(part: Part): Promise<Disturbed> {
    journal.length = 0;
    await configure(projects, {});
    simulator.faults.set(faults);
    living.start();
    watch.start();
    const [{ troubles, differences }] = await Promise.all([
      disturb(part),
      reloadAgainAndAgain(watch, { count: part.reloads ?? 0, configure, projects }),
    ]);
    living.stop();
    simulator.faults.clear();
    const atRest = await isServedInPeace(journal, projects);
    await watch.end();
    return {
      troubles,
      differences: atRest ? differences : ['some listings are not asked for any more'],
    };
  }

  /** Polls once more without faults, which retries pending failures, and reads all data. */
  async function observe(
    known: Pick<Observation, 'runs' | 'troubles' | 'before'>,
  ): Promise<Observation> {
    await configure(projects, { timeout: TIMEOUT_OF_ALL_AT_ONCE });
    const poll = await runCommand('poll', config, source);
    const transitions = await runCommand('transitions', config, source);
    const failures = await runCommand('failures', config, source);
    const statuses = await runCommand('status', config, source);
    const reader = await openReader({ path: join(dirname(config), 'evalwatch.db') });
    const snapshot = await reader.snapshot();
    await reader.close();
    for (const { code, output } of [poll, transitions, failures, statuses]) {
      if (code !== 0) throw new Error(`a command failed: ${output.slice(0, 2000)}`);
      if (output.includes(KEY)) throw new Error('a command printed the API key');
    }
    return {
      ...known,
      runs: [...(known.runs ?? []), poll.run],
      journal,
      key: KEY,
      missingAfter: MISSING_AFTER,
      projects,
      transitions: transitions.rows as readonly TransitionRow[],
      failures: failures.rows as readonly FailureRow[],
      statuses: statuses.rows as readonly StatusRow[],
      samples: watch.lives.at(-1)?.samples ?? new Map(),
      errorTotals: storedErrorTotals(snapshot),
      gave: living.gave,
    };
  }

  let before: Before = { states: new Map(), transitionId: 0 };
  let earlier: readonly Run[] = [];
  let listings = 0;
  let troubles = 0;
  for (const [index, part] of parts.entries()) {
    const lived = watch.lives.length;
    const life = await live(part);
    const runs = [...earlier, ...watch.lives.slice(lived).map(({ run }) => run)];
    const observation = await observe({ runs, troubles: life.troubles, before });
    const { differences, end } = compare(observation);
    const found = [
      ...life.differences,
      ...watch.differences.filter((line) => !line.includes(STRANGER.id)),
      ...differences,
      ...checkAgainstWorld(observation, living),
    ];
    listings += journal.length;
    troubles += life.troubles.length;
    print(`part ${index + 1}: ${journal.length} listings, ${found.length} differences`);
    if (found.length > 0 || index === parts.length - 1) {
      const { lives } = watch;
      return { differences: found, observation, lives, listings, comparisons: index + 1, troubles };
    }
    before = end;
    earlier = observation.runs.map((run) => ({
      ...run,
      lines: run.lines.filter(({ event }) => event === undefined || !PASSING.has(event)),
    }));
  }
  throw new Error('a soak has a part or more');
}

/** Events whose lines are compared only within the part that they belong to. */
const PASSING = new Set([
  'poll.completed',
  'poll.failed',
  'poll.recovered',
  'api.retried',
  'items.anomalous',
  'store.commit_failed',
]);
