import { setImmediate, setTimeout } from 'node:timers/promises';
import type { JournalEntry } from '../../../src/simulator/world/journal.ts';
import type { TimeSpan } from '../oracle/observation.ts';
import { scrape } from '../scrape.ts';
import type { DaemonWatch, Life } from './watch.ts';

/** Part of a soak: how long it takes, and what is done to the daemon in that time. */
export interface Part {
  readonly seconds: number;
  /** Number of kills by SIGKILL, each followed by a start. */
  readonly kills: number;
  /** Number of times that its disk fails for a while. */
  readonly troubles: number;
  /** Number of reloads, which may take longer than `seconds`. Default 0. Not with kills. */
  readonly reloads?: number;
}

/** Makes the disk of a daemon fail; the returned function repairs it. */
export type Trouble = (round: number) => Promise<() => Promise<void>>;

export interface Disturbed {
  /** Times when the store could not be written. */
  readonly troubles: readonly TimeSpan[];
  /** Expected reactions of the daemon that did not occur. */
  readonly differences: readonly string[];
}

/** Maximum wait for a good moment to kill. */
const LONGEST_WAIT_MS = 3000;
/** Maximum wait until the daemon has started, counts a failed commit, or commits again. */
const PATIENCE_MS = 120_000;
const LOOK_EVERY_MS = 100;
/** Maximum time between serving a listing and the commit of its poll. */
const POLL_MS = 10_000;
const TROUBLE_MS = 2000;
/** One disk failure in this many includes a kill. */
const DEADLY = 3;

/**
 * Returns a function that disturbs the daemons of a watch as a part describes, in an order and with pauses from `random`. It
 * resolves when the time of the part is over.
 */
export function createDisturbance(
  watch: DaemonWatch,
  journal: readonly JournalEntry[],
  random: () => number,
  trouble: ((pid: number) => Trouble) | undefined,
): (part: Part) => Promise<Disturbed> {
  const differences: string[] = [];
  let kills = 0;
  let troubles = 0;

  async function killAtAMoment(): Promise<void> {
    await waitForMoment();
    await watch.kill();
    await answerTheDead();
    await setTimeout(1000 * random());
    watch.start();
    kills += 1;
  }

  /**
   * Waits for a moment to kill, because most are harmless. In turn: any; just after a listing was served, around its commit;
   * between the lines of a commit; between the line of a failure and its settlement.
   */
  async function waitForMoment(): Promise<void> {
    const lines = watch.lives.at(-1)?.run.lines ?? [];
    const served = journal.length;
    const told = lines.length;
    const tells = (event: string) => () => lines.slice(told).some((line) => line.event === event);
    const moments = [
      () => true,
      () => journal.length > served,
      tells('prompt.transition'),
      tells('prompt.failed'),
    ];
    await until(moments[kills % moments.length] ?? (() => true), LONGEST_WAIT_MS);
    if (kills % moments.length === 1) await setTimeout(15 * random());
  }

  /** Makes the disk fail. The daemon must count failed commits, stay up, and commit again. */
  async function takeTheDisk(
    takeFrom: (pid: number) => Trouble,
    mayKill: boolean,
  ): Promise<TimeSpan> {
    const life = watch.lives.at(-1);
    if (life === undefined || !(await until(() => life.url() !== undefined, PATIENCE_MS))) {
      throw new Error('there is no daemon whose disk could fail');
    }
    const from = Date.now() - POLL_MS;
    const failed = await countOf(life, 'evalwatch_store_commit_failures_total{');
    const giveBack = await takeFrom(life.pid)(troubles);
    troubles += 1;
    try {
      const told = await grows(life, 'evalwatch_store_commit_failures_total{', failed);
      if (!told) differences.push('no failed commit was counted while the disk failed');
      await setTimeout(TROUBLE_MS * random());
      if (mayKill && troubles % DEADLY === 0) await killAtAMoment();
    } finally {
      await giveBack();
    }
    const to = Date.now();
    if (life === watch.lives.at(-1)) {
      const committed = await countOf(life, 'evalwatch_store_commit_duration_seconds_count');
      const recovered = await grows(
        life,
        'evalwatch_store_commit_duration_seconds_count',
        committed,
      );
      if (!recovered) differences.push('no commit after the disk had failed');
    }
    return { from, to };
  }

  return async (part) => {
    const acts = shuffled([
      ...Array.from({ length: part.kills }, () => 'kill' as const),
      ...Array.from({ length: trouble ? part.troubles : 0 }, () => 'trouble' as const),
    ]);
    const spans: TimeSpan[] = [];
    const end = performance.now() + part.seconds * 1000;
    for (const [index, act] of acts.entries()) {
      const left = (end - performance.now()) / (acts.length - index + 1);
      await setTimeout(Math.max(0, left * (0.4 + 1.2 * random())));
      if (act === 'kill') await killAtAMoment();
      else if (trouble !== undefined) spans.push(await takeTheDisk(trouble, part.kills > 0));
    }
    await setTimeout(Math.max(0, end - performance.now()));
    return { troubles: spans, differences: differences.splice(0) };
  };

  function shuffled<Act>(acts: readonly Act[]): readonly Act[] {
    return acts
      .map((act) => ({ act, at: random() }))
      .toSorted((one, other) => one.at - other.at)
      .map(({ act }) => act);
  }
}

async function countOf({ url }: Life, prefix: string): Promise<number> {
  const { samples } = await scrape(url() ?? '');
  return [...samples]
    .filter(([series]) => series.startsWith(prefix))
    .reduce((sum, [, value]) => sum + value, 0);
}

async function grows(life: Life, prefix: string, before: number): Promise<boolean> {
  const deadline = Date.now() + PATIENCE_MS;
  while ((await countOf(life, prefix)) <= before) {
    if (Date.now() > deadline) return false;
    await setTimeout(LOOK_EVERY_MS);
  }
  return true;
}

/** Number of event loop turns; a request that the kernel already holds needs fewer. */
const TURNS = 50;

/** Waits until the requests of a killed process are served, so that the next process is not taken for their sender. */
export async function answerTheDead(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn += 1) await setImmediate();
}

/** Resolves to whether the condition became true in time. */
export async function until(condition: () => boolean, patienceMs: number): Promise<boolean> {
  const deadline = Date.now() + patienceMs;
  while (!condition()) {
    if (Date.now() > deadline) return false;
    await setTimeout(1);
  }
  return true;
}
