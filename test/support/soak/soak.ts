import { setTimeout } from 'node:timers/promises';
import type { FaultRule } from '../../../src/simulator/fault-plan.ts';
import type { JournalEntry } from '../../../src/simulator/journal.ts';
import { startSimulator } from '../../../src/simulator/server.ts';
import { differences } from '../oracle.ts';
import {
  type FailureRow,
  listingsOf,
  type Observation,
  type StatusRow,
  type TransitionRow,
} from '../oracle/observation.ts';
import type { Scrape } from '../scrape.ts';
import { temporaryDirectory } from '../temporary.ts';
import { checkAgainstWorld } from './at-rest.ts';
import { KEY, makeProjects, MISSING_AFTER, writeConfiguration } from './configuration.ts';
import { createLivingWorld } from './living-world.ts';
import { runCommand } from './processes.ts';
import { reloadAgainAndAgain, STRANGER } from './reloads.ts';
import { type DaemonWatch, watchDaemons } from './watch.ts';

export interface SoakOptions {
  /** How long the world moves and things go wrong. */
  readonly seconds: number;
  /** How often the daemon is killed by SIGKILL in that time, and started again. */
  readonly kills: number;
  readonly faults: readonly FaultRule[];
  /** Of the world and the faults; when the daemon is killed is left to chance. */
  readonly seed: number;
  readonly projects: number;
  /** How often another configuration is loaded, however long that takes; by default never. Not with kills. */
  readonly reloads?: number;
}

export interface SoakReport {
  readonly differences: readonly string[];
  readonly observation: Observation;
  /** The last scrape of each daemon. */
  readonly scrapes: readonly Scrape[];
}

const PATIENCE_MS = 60_000;
/** For a good moment to kill. */
const LONGEST_WAIT_MS = 3000;

/**
 * Lets the daemon watch a lively world through a faulty service, kills it now and then, lets everything come to rest and
 * compares what it recorded, showed and told with what it was served.
 */
export async function soak(options: SoakOptions): Promise<SoakReport> {
  const { faults, seed } = options;
  await using directory = await temporaryDirectory();
  await using opened = new AsyncDisposableStack();
  const projects = makeProjects(options.projects);
  const living = createLivingWorld(
    projects.map(({ id }) => id),
    seed,
  );
  const journal: JournalEntry[] = [];
  const simulator = await startSimulator({
    world: living.world,
    keys: KEY,
    faults,
    faultSeed: seed,
    journal: (entry) => journal.push(entry),
  });
  opened.defer(() => simulator.close());
  const config = await writeConfiguration(directory.path, simulator.url, projects);
  const watch = opened.use(watchDaemons(config));

  opened.defer(() => living.stop());
  living.start();
  watch.start();
  await Promise.all([
    disturb(watch, journal, options),
    reloadAgainAndAgain(watch, {
      count: options.reloads ?? 0,
      configure: (changed, settings) =>
        writeConfiguration(directory.path, simulator.url, changed, settings),
      projects,
    }),
  ]);
  living.stop();
  simulator.faults.clear();
  const atRest = await isServedInPeace(journal, projects);
  await watch.end();

  // Tries what is pending once more, now that nothing goes wrong.
  const poll = await runCommand('poll', config);
  const transitions = await runCommand('transitions', config);
  const failures = await runCommand('failures', config);
  const statuses = await runCommand('status', config);
  const scrapes = watch.scrapes();
  const observation: Observation = {
    journal,
    key: KEY,
    missingAfter: MISSING_AFTER,
    projects,
    runs: [...watch.runs, poll.run],
    transitions: transitions.rows as readonly TransitionRow[],
    failures: failures.rows as readonly FailureRow[],
    statuses: statuses.rows as readonly StatusRow[],
    samples: scrapes.at(-1)?.samples ?? new Map(),
    gave: living.gave,
  };
  const commands = [poll, transitions, failures, statuses];
  const printed = [
    ...commands.map(({ output }) => output),
    ...scrapes.map(({ text }) => text),
    ...watch.runs.map(({ lines }) => JSON.stringify(lines)),
  ];
  return {
    observation,
    scrapes,
    differences: [
      ...(atRest ? [] : ['some listings are not asked for any more']),
      ...watch.differences.filter((line) => !line.includes(STRANGER.id)),
      ...differences(observation),
      ...checkAgainstWorld(observation, living),
      ...commands.filter(({ code }) => code !== 0).map(({ output }) => `failed: ${output}`),
      ...(printed.some((text) => text.includes(KEY)) ? ['the API key was printed'] : []),
    ],
  };
}

/** Lets the time pass, with kills spread over it. */
async function disturb(
  watch: DaemonWatch,
  journal: readonly JournalEntry[],
  { seconds, kills }: SoakOptions,
): Promise<void> {
  const pause = (seconds * 1000) / Math.max(1, kills);
  if (kills === 0) await setTimeout(pause);
  for (let n = 0; n < kills; n += 1) {
    await setTimeout(pause * (0.2 + 1.4 * Math.random()));
    await waitForMoment(n, watch, journal);
    await watch.kill();
    await setTimeout(pause * 0.2 * Math.random());
    watch.start();
  }
}

/**
 * Most moments are harmless. These come in turn: any; just after a listing was served, around its commit; between the
 * lines of a commit; between the line of a failure and its settlement.
 */
async function waitForMoment(
  n: number,
  { runs }: DaemonWatch,
  journal: readonly JournalEntry[],
): Promise<void> {
  const served = journal.length;
  const told = runs.at(-1)?.lines.length;
  const tells = (event: string) => () =>
    runs.at(-1)?.lines.some((line, index) => line.event === event && index >= (told ?? 0)) ?? false;
  const moments = [
    () => true,
    () => journal.length > served,
    tells('prompt.transition'),
    tells('prompt.failed'),
  ];
  await until(moments[n % moments.length] ?? (() => true), LONGEST_WAIT_MS);
  if (n % moments.length === 1) await setTimeout(Math.random() * 15);
}

/** Whether each listing is served often enough, from now on, for everything to be as it will stay. */
async function isServedInPeace(
  journal: readonly JournalEntry[],
  projects: Observation['projects'],
): Promise<boolean> {
  const quietAt = Date.now();
  return await until(() => {
    const recent = journal.filter(({ producedAt }) => producedAt >= quietAt);
    return listingsOf({ projects }).every(({ project, kind }) => {
      const served = recent.filter((entry) => entry.project === project && entry.kind === kind);
      return served.length >= MISSING_AFTER + 2;
    });
  }, PATIENCE_MS);
}

async function until(condition: () => boolean, patienceMs: number): Promise<boolean> {
  const deadline = Date.now() + patienceMs;
  while (!condition()) {
    if (Date.now() > deadline) return false;
    await setTimeout(1);
  }
  return true;
}
