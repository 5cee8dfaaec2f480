import { postgresPrograms } from '../test/support/postgres-server.ts';
import { type Figures, type Row, type RowOptions, SOURCE } from './row.ts';
import { OF_DAEMON, OF_WORKERS } from './simulation/bugs.ts';
import { KEPT } from './simulation/kept.ts';
import { openPlayer, type Player, type Report } from './simulation/play.ts';
import { type Part, PARTS, type Scenario, wholeScenario } from './simulation/scenario.ts';
import { shrink } from './simulation/shrink.ts';

/** Lines of the trace that an error shows. */
const SHOWN_LINES = 60;

interface Size {
  readonly seeds: number;
  readonly hours: number;
  readonly projects: number;
}

const LONG: Readonly<Record<Part, Size>> = {
  daemon: { seeds: 40, hours: 24, projects: 20 },
  workers: { seeds: 40, hours: 24, projects: 20 },
  server: { seeds: 4, hours: 3, projects: 3 },
};
const SHORT: Readonly<Record<Part, Size>> = {
  daemon: { seeds: 1, hours: 2, projects: 3 },
  workers: { seeds: 1, hours: 2, projects: 3 },
  server: { seeds: 1, hours: 1, projects: 3 },
};
/** Some ten CPU minutes at most: the first finding ends the search. */
const SEARCH: Readonly<Record<Part, Size>> = {
  daemon: { seeds: 200, hours: 12, projects: 3 },
  workers: { seeds: 300, hours: 12, projects: 3 },
  server: { seeds: 40, hours: 3, projects: 3 },
};

/** Simulates years in minutes: daemons, their store and their service in virtual time. The seed decides everything. */
export const simulation: Row = {
  name: 'simulation',
  drawsSeed: true,
  bug: [
    ...OF_DAEMON.map((bug) => ({ ...bug, part: 'daemon' })),
    ...OF_WORKERS.map((bug) => ({ ...bug, part: 'workers' })),
  ],
  run: async (options) => {
    const { part, source = SOURCE } = options;
    const parts = PARTS.filter(
      (one) =>
        (part === undefined || part === one) &&
        (one !== 'server' || postgresPrograms() !== undefined),
    );
    await using players = new AsyncDisposableStack();
    const games: Game[] = [];
    for (const one of parts) {
      games.push(createGame(one, players.use(await openPlayer(one, source)), options));
    }
    // The first seed of each part comes first, so that it is repeated soon.
    for (const game of games) await game.play(0, 1);
    for (const game of games) await game.play(1);
    return (await Promise.all(games.map((game) => game.finish()))).flat();
  },
};

interface Game {
  /** Plays the seeds with these numbers. @throws {Error} if one finds something */
  play(from: number, to?: number): Promise<void>;
  /** Replays the first seed and returns the figures. */
  finish(): Promise<Figures>;
}

function createGame(
  part: Part,
  player: Player,
  { short, seed, print, source = SOURCE }: RowOptions,
): Game {
  const isSearch = source !== SOURCE;
  const { seeds, ...size } = (isSearch ? SEARCH : short ? SHORT : LONG)[part];
  const scenarios = Array.from({ length: seeds }, (_, n) => wholeScenario(part, seed + n, size));
  const kept = isSearch ? [] : KEPT.filter((one) => one.part === part);
  const withoutFaults = isSearch ? [] : [{ ...wholeScenario(part, seed, size), kinds: [] }];
  const reports: Report[] = [];
  let cpuSeconds = 0;
  return {
    play: async (from, to) => {
      const before = cpuSeconds;
      const isFirst = from === 0;
      const seeded = scenarios.slice(from, to);
      const played = isFirst ? [...kept, ...seeded] : [...seeded, ...withoutFaults];
      for await (const report of player.play(played)) {
        const { scenario, faults, listings, moves } = report;
        if (faults.length > 0) {
          const smaller = isSearch ? report : await shrink(player, report);
          throw new Error([describe(report), ...tell(smaller)].join('\n'));
        }
        reports.push(report);
        cpuSeconds = before + report.cpuSeconds;
        print(`${part}, seed ${scenario.seed}: ${listings} listings, ${moves} transitions`);
      }
    },
    finish: async () => {
      if (isSearch) return [];
      await repeat(player, scenarios.slice(0, 1), reports[kept.length]);
      if (part === 'server') {
        // The model must lead to the same trace as the server.
        await using model = await openPlayer('workers', source);
        await repeat(model, scenarios.slice(0, 1), reports[kept.length]);
      }
      const played = `${seed} to ${seed + seeds - 1}, ${kept.length} kept ones, and one without faults`;
      return figuresOf(part, reports, played, size.projects, cpuSeconds);
    },
  };
}

/** @throws {Error} if a run writes another trace than before */
async function repeat(
  player: Player,
  scenarios: readonly Scenario[],
  before: Report | undefined,
): Promise<void> {
  for await (const { digest, scenario } of player.play(scenarios)) {
    if (digest !== before?.digest) throw new Error(`seed ${scenario.seed} did not repeat itself`);
  }
}

function figuresOf(
  part: Part,
  reports: readonly Report[],
  seeds: string,
  projects: number,
  cpuSeconds: number,
): Figures {
  const days = sum(reports, (report) => report.days);
  const acts = [...new Set(reports.flatMap((report) => Object.keys(report.acts)))].toSorted();
  return (
    [
      ['seeds', `${seeds}, the first twice with the same trace`],
      [`simulated days, with ${projects} projects`, days.toFixed(1)],
      ['simulated days in a CPU hour', String(Math.round((days / cpuSeconds) * 3600))],
      ...acts.map(
        (name) => [name, String(sum(reports, (report) => report.acts[name] ?? 0))] as const,
      ),
      ['listings taken', String(sum(reports, (report) => report.listings))],
      ['transitions', `${sum(reports, (report) => report.moves)}, each stored and told once`],
      ['failures', `${sum(reports, (report) => report.failures)}, each told and settled`],
    ] as const
  ).map(([figure, value]) => [`${part}: ${figure}`, value] as const);
}

function describe({ scenario, faults }: Report): string {
  return `${faults[0]} (${scenario.part}, seed ${scenario.seed}, ${scenario.hours} h, ${faults.length} faults)`;
}

/** Returns a run to keep, and the end of its trace. */
function tell(report: Report): readonly string[] {
  const { scenario, faults, trace } = report;
  const at = trace.findIndex((line) => line.includes(' FAULT '));
  const end = at === -1 ? trace.length : at + 1;
  const shown = trace.slice(Math.max(0, end - SHOWN_LINES), end);
  return [
    `  the smallest run that was found: ${JSON.stringify({ ...scenario, found: faults[0] })}`,
    ...shown.map((line) => `    ${line.slice(0, 400)}`),
  ];
}

function sum(reports: readonly Report[], of: (report: Report) => number): number {
  return reports.reduce((total, report) => total + of(report), 0);
}
