import { setTimeout } from 'node:timers/promises';
import type { JournalEntry } from '../../../../src/simulator/journal.ts';
import { startSimulator } from '../../../../src/simulator/server.ts';
import { differences } from '../../oracle.ts';
import {
  type FailureRow,
  listingsOf,
  type StatusRow,
  type TransitionRow,
} from '../../oracle/observation.ts';
import { scrape } from '../../scrape.ts';
import { checkAgainstWorld } from '../../soak/at-rest.ts';
import { KEY, makeProjects, MISSING_AFTER, writeConfiguration } from '../../soak/configuration.ts';
import { createLivingWorld } from '../../soak/living-world.ts';
import { runCommand } from '../../soak/processes.ts';
import { watchDaemons } from '../../soak/watch.ts';
import type { Trouble } from './full-disk.ts';
import { notedEntries, withoutRepeats } from './noted.ts';

const PATIENCE_MS = 30_000;

export interface TroubleReport {
  readonly commitFailures: number;
  readonly transitions: number;
  readonly failures: number;
  readonly listings: number;
  readonly listingsNotStored: number;
  /** Lines of failures that were told before. */
  readonly repeatedLines: number;
}

/**
 * Lets one daemon watch a lively world while its disk is taken and given back, so many times of each trouble, and compares
 * it with the oracle. @throws if it ends, does not answer, does not say that commits fail, does not recover or loses anything
 */
export async function troubledDaemon(
  directory: string,
  seed: number,
  troubles: (pid: number) => readonly (readonly [trouble: Trouble, times: number])[],
): Promise<TroubleReport> {
  await using opened = new AsyncDisposableStack();
  const projects = makeProjects(3);
  const ids = projects.map(({ id }) => id);
  const living = createLivingWorld(ids, seed);
  const journal: JournalEntry[] = [];
  const simulator = await startSimulator({
    world: living.world,
    keys: KEY,
    journal: (entry) => journal.push(entry),
  });
  opened.defer(() => simulator.close());
  const config = await writeConfiguration(directory, simulator.url, projects);
  const watch = opened.use(watchDaemons(config));
  opened.defer(() => living.stop());
  living.start();
  watch.start();
  const { pid, url } = await until('daemon.started', () => {
    const line = watch.runs[0]?.lines.find(({ event }) => event === 'daemon.started');
    return line as { pid: number; url: string } | undefined;
  });
  const isPolled = () =>
    ids.every((id) => journal.some(({ project }) => project === id)) ? true : undefined;
  await until('first polls', isPolled);
  await isUp(url, ids);

  for (const [trouble, times] of troubles(pid)) {
    for (let round = 0; round < times; round += 1) {
      const before = await countFailures(url);
      const relieve = await trouble(round);
      try {
        await until('failed commits', async () =>
          (await countFailures(url)) > before ? true : undefined,
        );
      } finally {
        await relieve();
      }
      await isUp(url, ids);
    }
  }
  living.stop();
  const quietAt = Date.now();
  await until('peace', () =>
    listingsOf({ projects }).every(
      ({ project, kind }) =>
        journal.filter(
          (entry) =>
            entry.producedAt >= quietAt && entry.project === project && entry.kind === kind,
        ).length >=
        MISSING_AFTER + 2,
    )
      ? true
      : undefined,
  );
  const commitFailures = await countFailures(url);
  await watch.end();

  const poll = await runCommand('poll', config);
  const transitions = await runCommand('transitions', config);
  const failures = await runCommand('failures', config);
  const statuses = await runCommand('status', config);
  const allRuns = [...watch.runs, poll.run];
  const runs = allRuns.map((run) => ({
    ...run,
    // That commits fail is no surprise here.
    lines: withoutRepeats(run.lines).filter(({ event }) => event !== 'store.commit_failed'),
  }));
  const countTold = (those: typeof allRuns) =>
    those.flatMap(({ lines }) => lines.filter(({ event }) => event === 'prompt.failed')).length;
  const repeatedLines = countTold(allRuns) - countTold(runs);
  const noted = notedEntries(journal, runs);
  const observation = {
    journal: noted,
    key: KEY,
    missingAfter: MISSING_AFTER,
    projects,
    runs,
    transitions: transitions.rows as readonly TransitionRow[],
    failures: failures.rows as readonly FailureRow[],
    statuses: statuses.rows as readonly StatusRow[],
    samples: watch.scrapes().at(-1)?.samples ?? new Map<string, number>(),
    gave: living.gave,
  };
  const found = [
    ...watch.differences,
    ...differences(observation),
    ...checkAgainstWorld(observation, living),
    ...(repeatedLines > commitFailures ? ['failures were told again without need'] : []),
  ];
  if (found.length > 0) throw new Error(`${found.length} differences:\n${found.join('\n')}`);
  return {
    commitFailures,
    transitions: observation.transitions.length,
    failures: observation.failures.length,
    listings: journal.length,
    listingsNotStored: journal.length - noted.length,
    repeatedLines,
  };
}

async function isUp(url: string, projects: readonly string[]): Promise<void> {
  await until('recovery', async () => {
    const seen = await scrape(url);
    const isBack = projects.every(
      (id) => seen.value('evalwatch_project_up', { project: id }) === 1,
    );
    return isBack ? true : undefined;
  });
}

async function countFailures(url: string): Promise<number> {
  const { samples } = await scrape(url);
  return [...samples]
    .filter(([series]) => series.startsWith('evalwatch_store_commit_failures_total'))
    .reduce((sum, [, value]) => sum + value, 0);
}

async function until<Found>(
  what: string,
  look: () => Found | undefined | Promise<Found | undefined>,
): Promise<Found> {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (Date.now() > deadline) throw new Error(`waited in vain for: ${what}`);
    await setTimeout(50);
  }
}
