import { copyWithBug } from '../bug.ts';
import type { Bug } from '../row.ts';
import { median } from '../../bench/statistics.ts';
import { OF_DAEMON, OF_WORKERS } from './bugs.ts';
import { openPlayer, type Player } from './play.ts';
import { type PartFromSeed, type Scenario, wholeScenario } from './scenario.ts';

const SIZE = { hours: 12, projects: 3 };
/** CPU time after which a search gives up, seconds. */
const MAX_SECONDS = 600;
/** Number of seeds of a search, more than it needs. */
const SEEDS = 1000;

export interface RatesOptions extends PartFromSeed {
  /** Number of searches for each mistake, {@link SEEDS} seeds apart. */
  readonly searches: number;
  /** Restricts the searches to the mistakes with this text. */
  readonly mistake: string;
}

/**
 * Searches for each planted mistake several times, each time from another seed, and prints how often it is found. Returns the
 * number of mistakes that fewer than nine searches of ten find.
 * @throws {Error} if no mistake has the text
 */
export async function rates(options: RatesOptions): Promise<number> {
  const { part, seed, searches, mistake, print } = options;
  const all = part === 'daemon' ? OF_DAEMON : OF_WORKERS;
  const meant = all.filter(({ what }) => what.includes(mistake));
  if (meant.length === 0)
    throw new Error(`no planted mistake of ${part} has the text "${mistake}"`);
  let missed = 0;
  for (const bug of meant) {
    await using copy = await copyWithBug(bug);
    await using player = await openPlayer(part, copy.source);
    const seconds: number[] = [];
    for (let n = 0; n < searches; n += 1) {
      const from = seed + n * SEEDS;
      const scenarios = Array.from({ length: SEEDS }, (_, at) =>
        wholeScenario(part, from + at, SIZE),
      );
      const found = await secondsUntil(bug, player, scenarios);
      if (found !== undefined) seconds.push(found);
    }
    if (seconds.length < 0.9 * searches) missed += 1;
    const within =
      seconds.length === 0
        ? ''
        : `, CPU time: median ${median(seconds).toFixed(0)} s, at most ${Math.max(...seconds).toFixed(0)} s`;
    print(`${part}: ${bug.what}: found ${seconds.length} of ${searches}${within}`);
  }
  return missed;
}

/** Returns the CPU time until a run notices the mistake; undefined if none does in time. */
async function secondsUntil(
  { notice }: Bug,
  player: Player,
  scenarios: readonly Scenario[],
): Promise<number | undefined> {
  let before = 0;
  let next = 0;
  while (next < scenarios.length) {
    let spent = 0;
    for await (const { cpuSeconds, faults } of player.play(scenarios.slice(next))) {
      spent = cpuSeconds;
      next += 1;
      if (faults.some((fault) => notice.test(fault))) return before + spent;
      if (before + spent > MAX_SECONDS) return undefined;
    }
    // A run that found something else ended its process.
    before += spent;
  }
  return undefined;
}
