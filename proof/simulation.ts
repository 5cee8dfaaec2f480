import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { startPostgres } from '../test/support/postgres.ts';
import { postgresPrograms } from '../test/support/postgres-server.ts';
import { type Bug, type Figures, type Row, type RowOptions, SOURCE } from './row.ts';
import type { Outcome } from './simulation/run.ts';

const CHILD = fileURLToPath(new URL('simulation/child.ts', import.meta.url));
/** A disk in memory: every commit is flushed. */
const MEMORY_DISK = '/dev/shm';
/** Nothing of the server may depend on real time. */
const SETTINGS = ['autovacuum=off', 'synchronous_commit=off'];
/** Lines of the trace that an error shows. */
const SHOWN_LINES = 60;

/** One daemon with SQLite, or three workers with PostgreSQL. */
type Part = 'daemon' | 'workers';

/** A seed of a child, and what it cost. */
type Report = Outcome & { readonly cpuSeconds: number };

interface Size {
  readonly seeds: number;
  readonly hours: number;
}

const LONG: Readonly<Record<Part, Size>> = {
  daemon: { seeds: 40, hours: 24 },
  workers: { seeds: 40, hours: 6 },
};
const SHORT: Readonly<Record<Part, Size>> = {
  daemon: { seeds: 1, hours: 4 },
  workers: { seeds: 1, hours: 2 },
};
/** Enough for each planted mistake. */
const SEARCH: Readonly<Record<Part, Size>> = {
  daemon: { seeds: 40, hours: 12 },
  workers: { seeds: 40, hours: 3 },
};

const OF_DAEMON: readonly Bug[] = [
  {
    what: 'a poll is told before its transaction is committed',
    file: 'store/sqlite/sql/transactions.ts',
    replace: [
      [
        'if (place.begins) begin.run();',
        'if (db.inTransaction && place.begins) commit.run();\nif (place.begins) begin.run();',
      ],
      ['if (place.ends) commit.run();', ''],
    ],
    notice: /told, not stored|told twice|(?:transitions|prompts) of/,
  },
  {
    what: 'a failure is settled before its line is written',
    file: 'monitor/failure-reporter.ts',
    replace: [
      [
        'settlement: Settlement): Promise<void> {\n    emit(',
        'settlement: Settlement): Promise<void> {\n    await settle(failure.transitionId, settlement);\n    emit(',
      ],
    ],
    notice: /is settled, not told/,
  },
  {
    what: 'a listing whose commit failed counts as known',
    file: 'monitor/poller.ts',
    replace: [
      [
        'markNotStored(memory);',
        'if (!(compared instanceof StoreError)) updateMemory(memory, compared.answers, clock);',
      ],
    ],
    notice: /transitions of|prompts of/,
  },
  {
    what: 'a run that was missed while no daemon ran is forgotten',
    file: 'schedule/scheduler.ts',
    replace: [['atOnce = isMissed();', 'atOnce = lastPollAt === undefined;']],
    notice: /was due .* ago and is not polled/,
  },
  {
    what: 'a clock that was set back goes unnoticed',
    file: 'schedule/setback.ts',
    replace: [['if (byMs <= MAX_DRIFT_MS) return undefined;', 'if (byMs !== 0) return undefined;']],
    notice: /is not polled for/,
  },
  {
    what: 'requests that are about to be sent do not count for the rate',
    file: 'evaluation-api/fairness/rate-limit.ts',
    replace: [['sentAt.length + reserved < maxInWindow', 'sentAt.length < maxInWindow']],
    notice: /requests in a second/,
  },
  {
    what: 'a failure whose settlement could not be stored is told again',
    file: 'monitor/failure-reporter.ts',
    replace: [['logged.set(failure.transitionId, settlement);', '']],
    notice: /told twice by/,
  },
  {
    what: 'a stop leaves the timer of the failure reporter',
    file: 'monitor/failure-reporter.ts',
    replace: [['timer?.cancel();', '']],
    notice: /timers are left/,
  },
];

/** The server's side is real, so these mistakes are in the statements and in what the workers make of the answers. */
const OF_WORKERS: readonly Bug[] = [
  {
    what: 'a commit is not fenced by the ownership',
    file: 'store/postgres/sql/poll-commit.ts',
    replace: [
      [
        'WHERE id = $1 AND epoch = $2 AND version = $3 AND owner = $15',
        'WHERE id = $1 AND (epoch = $2 OR true) AND version = $3 AND (owner = $15 OR true)',
      ],
    ],
    notice: /committed \w+, which/,
  },
  {
    what: 'a commit whose answer was lost counts as not made',
    file: 'store/postgres/commits.ts',
    replace: [['if (unknown) return await resolve(context, poll, after, started);', '']],
    notice: /was not told|transitions of/,
  },
  {
    what: 'a commit whose answer was lost counts as made',
    file: 'store/postgres/commits.ts',
    replace: [
      [
        'if (unknown) return await resolve(context, poll, after, started);',
        'if (unknown) return succeeded(poll, { transition_ids: null }, started);',
      ],
    ],
    notice: /told, not stored|told twice|transitions of/,
  },
  {
    what: 'projects of a worker that died have an owner for ever',
    file: 'store/postgres/ownership/coordinator.ts',
    replace: [['(p.owner IS NULL OR p.owner NOT IN (SELECT worker FROM live))', 'p.owner IS NULL']],
    notice: /is not polled for|known as/,
  },
];

/** Years in minutes: daemons, their store and their service in virtual time, where the seed decides everything. */
export const simulation: Row = {
  name: 'simulation',
  bug: [
    ...OF_DAEMON.map((bug) => ({ ...bug, part: 'daemon' })),
    ...OF_WORKERS.map((bug) => ({ ...bug, part: 'workers' })),
  ],
  run: async (options) => {
    const { part } = options;
    const ofDaemon = part === 'workers' ? [] : await runPart('daemon', options);
    if (part === 'daemon' || postgresPrograms === undefined) return ofDaemon;
    return [...ofDaemon, ...(await runPart('workers', options))];
  },
};

async function runPart(
  part: Part,
  { short, seed, print, source = SOURCE }: RowOptions,
): Promise<Figures> {
  const size = (source !== SOURCE ? SEARCH : short ? SHORT : LONG)[part];
  const seeds = Array.from({ length: size.seeds }, (_, n) => seed + n);
  const reports: Report[] = [];
  for await (const report of play(part, source, size, seeds)) {
    reports.push(report);
    const { faults, trace } = report;
    if (faults.length > 0) throw new Error(describe(part, report.seed, faults, trace));
    print(`${part}, seed ${report.seed}: ${report.listings} listings, ${report.moves} transitions`);
  }
  if (source !== SOURCE) return [];
  const [first] = reports;
  for await (const again of play(part, source, size, seeds.slice(0, 1))) {
    if (again.digest !== first?.digest) throw new Error(`seed ${seed} did not repeat itself`);
  }
  const days = sum(reports, (report) => report.days);
  const cpuSeconds = reports.at(-1)?.cpuSeconds ?? 0;
  const acts = [...new Set(reports.flatMap((report) => Object.keys(report.acts)))].toSorted();
  return (
    [
      ['seeds', `${seed} to ${seed + reports.length - 1}, the first twice with the same trace`],
      ['simulated days, with 3 projects', days.toFixed(1)],
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

function describe(
  part: Part,
  seed: number,
  faults: readonly string[],
  trace: readonly string[],
): string {
  const at = trace.findIndex((line) => line.includes(' FAULT '));
  const end = at === -1 ? trace.length : at + 1;
  const shown = trace.slice(Math.max(0, end - SHOWN_LINES), end);
  return [
    `${faults[0]} (${part}, seed ${seed}, ${faults.length} faults)`,
    ...shown.map((line) => `    ${line.slice(0, 400)}`),
  ].join('\n');
}

/** Simulates these seeds in another process, until one fails. */
async function* play(
  part: Part,
  source: string,
  { hours }: Size,
  seeds: readonly number[],
): AsyncGenerator<Report> {
  await using server = part === 'workers' ? await startPostgres({ settings: SETTINGS }) : undefined;
  const runs: string[] = [];
  for (const seed of seeds) {
    const database = await server?.createDatabase();
    runs.push(database === undefined ? String(seed) : `${seed}=${database.url}`);
  }
  const child = spawn(process.execPath, [CHILD, source, String(hours), ...runs], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...(existsSync(MEMORY_DISK) && { TMPDIR: MEMORY_DISK }) },
  });
  let ended = 0;
  try {
    for await (const line of createInterface(child.stdout)) {
      const report = JSON.parse(line) as Report;
      ended += 1;
      yield report;
      if (report.faults.length > 0) return;
    }
    if (ended < seeds.length) throw new Error(`the simulation ended before seed ${seeds[ended]}`);
  } finally {
    child.kill('SIGKILL');
  }
}

function sum(reports: readonly Report[], of: (report: Report) => number): number {
  return reports.reduce((total, report) => total + of(report), 0);
}
