import { type Figures, type Row, SOURCE } from './row.ts';
import { searchMistakes } from './simulation/mistakes.ts';
import { play, type Report } from './simulation/play.ts';
import { KINDS } from './simulation/postgres/sender.ts';
import { type Part, PARTS } from './simulation/scenario.ts';

/** Simulated days of each part. */
const LONG_DAYS = 200;
const SHORT_DAYS = 1;
const ALWAYS = ['kill', 'stop', 'pause', 'reload', 'clock set', 'bad network', 'bad store'];
/** What must happen in all these days: a fault that never comes, or that hits no statement, proves nothing. */
const ACTS: Readonly<Record<Part, readonly string[]>> = {
  daemon: ALWAYS,
  workers: [
    ...ALWAYS,
    'failover',
    'partition',
    'database away',
    ...KINDS.map((kind) => `statement that ${kind}`),
  ],
};
/** Lines of the trace that an error shows. */
const SHOWN_LINES = 60;

/** Simulates months in hours: daemons, their store and their service in virtual time. The seed decides everything. */
export const simulation: Row = {
  name: 'simulation',
  drawsSeed: true,
  judges: ['app', 'coordination', 'domain', 'client', 'monitor', 'schedule', 'store'].map(
    (folder) => `src/${folder}/`,
  ),
  run: async ({ short, seed, print, part: only, days: given }) => {
    const days = given ?? (short ? SHORT_DAYS : LONG_DAYS);
    const figures: Figures[] = [];
    for (const part of PARTS.filter((one) => only === undefined || one === only)) {
      const played = await playUntil(part, seed, (one) => one.days >= days, print);
      figures.push(played);
      if (short || given !== undefined) continue;
      const happened = new Set(played.map(([figure]) => figure));
      const missing = ACTS[part].filter((act) => !happened.has(`${part}: ${act}`));
      if (missing.length > 0) throw new Error(`${part}: never happened: ${missing.join(', ')}`);
      await repeat(part, seed);
      figures.push(await searchMistakes(part, seed, print));
    }
    return figures.flat();
  },
};

/** Plays a seed twice. @throws {Error} if the runs differ, so that nobody could repeat what one of them finds */
async function repeat(part: Part, seed: number): Promise<void> {
  const digests = new Set<number>();
  for (let time = 0; time < 2; time += 1) {
    for await (const { digest } of play(part, seed, SOURCE)) {
      digests.add(digest);
      break;
    }
  }
  if (digests.size > 1) throw new Error(`${part}, seed ${seed}: the same seed gives other runs`);
}

/** What has been played so far. */
interface Played {
  readonly days: number;
  readonly cpuSeconds: number;
}

/** Plays seed after seed, until it is enough, and at least one. Returns the figures. @throws {Error} if a seed finds something */
export async function playUntil(
  part: Part,
  firstSeed: number,
  isEnough: (played: Played) => boolean,
  print: (line: string) => void,
): Promise<Figures> {
  const reports: Report[] = [];
  const sum = (of: (report: Report) => number) =>
    reports.reduce((total, one) => total + of(one), 0);
  for await (const report of play(part, firstSeed, SOURCE)) {
    if (report.faults.length > 0) throw new Error(tell(part, report));
    reports.push(report);
    const { seed, listings, moves, cpuSeconds } = report;
    print(`${part}, seed ${seed}: ${listings} listings, ${moves} transitions`);
    const days = sum((one) => one.days);
    if (!isEnough({ days, cpuSeconds })) continue;
    const acts = [...new Set(reports.flatMap((one) => Object.keys(one.acts)))].toSorted();
    return [
      [`${part}: seeds`, `${firstSeed} to ${seed}`],
      [`${part}: simulated days`, days.toFixed(1)],
      [`${part}: CPU seconds`, cpuSeconds.toFixed(0)],
      ...acts.map(
        (name) => [`${part}: ${name}`, String(sum((one) => one.acts[name] ?? 0))] as const,
      ),
      ...Array.from(
        new Set(reports.flatMap(({ statements }) => statements)),
        (kind) => [`${part}: statement that ${kind}`, 'seen'] as const,
      ),
      [`${part}: listings taken`, String(sum((one) => one.listings))],
      [`${part}: transitions`, `${sum((one) => one.moves)}, each stored and told once`],
      [`${part}: failures`, `${sum((one) => one.failures)}, each told and settled`],
      [`${part}: experiments`, `${sum((one) => one.finishes)} finishes, each stored and told once`],
      [
        `${part}: messages`,
        `${sum((one) => one.messages)}, and ${sum((one) => one.repetitions)} repetitions`,
      ],
    ];
  }
  throw new Error('no run');
}

/** Returns what a run found, how to repeat it, and the end of its trace. */
function tell(part: Part, { seed, faults, trace }: Report): string {
  const at = trace.findIndex((line) => line.includes(' FAULT '));
  const end = at === -1 ? trace.length : at + 1;
  return [
    `${part}, seed ${seed}: ${faults.join('; ')}`,
    `  to repeat it: npm run proof -- simulation --part ${part} --seed ${seed} --days 0.1`,
    ...trace.slice(Math.max(0, end - SHOWN_LINES), end).map((line) => `    ${line.slice(0, 400)}`),
  ].join('\n');
}
