import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { systemClock } from '../../src/app/clock.ts';
import type { Settlement } from '../../src/domain/failure.ts';
import type * as ErrorInfoRoom from '../../src/evaluation-api/error-info.ts';
import type { FailureKey, Store } from '../../src/monitor/ports/store.ts';
import type * as SqliteRoom from '../../src/store/sqlite/sqlite-store.ts';
import { detectChanges } from '../../test/support/at-once.ts';
import { healthAt, startWorker } from '../../test/support/postgres-store.ts';
import { startPostgres } from '../../test/support/postgres.ts';
import { postgresPrograms } from '../../test/support/postgres-server.ts';
import { listingOf } from '../../test/support/monitor.ts';
import { hasPromtool, promtoolComplaints } from '../../test/support/promtool.ts';
import { scrape } from '../../test/support/scrape.ts';
import { writeConfiguration } from '../../test/support/soak/configuration.ts';
import { until } from '../../test/support/soak/disturbance.ts';
import { startDaemon } from '../../test/support/soak/processes.ts';
import { temporaryDirectory } from '../../test/support/temporary.ts';
import { type Figures, required, type RowOptions, SOURCE } from '../row.ts';

interface Size {
  readonly rounds: number;
  /** Number of prompts that fail in each round, each with an error_id of its own. */
  readonly failures: number;
}

const FORMS = {
  short: { sqlite: { rounds: 8, failures: 200 }, postgres: { rounds: 8, failures: 60 } },
  long: { sqlite: { rounds: 100, failures: 10_000 }, postgres: { rounds: 20, failures: 1000 } },
};
const PROJECT = 'alpha';
const HOUR = 60 * 60 * 1000;
/** Share of the rounds that retention keeps. */
const KEPT = 0.25;
const MAX_LABELS = 20;
const MAX_SERIES = MAX_LABELS + 2;
/** Maximum ratio of the cost of a settlement at the end to that after the first retention. */
const MAX_COST_GROWTH = 2;
const MAX_STORE_GROWTH = 1.5;
/** Tolerance for the write-ahead log of a store, whose size varies. */
const LOG_BYTES = 8 * 1024 * 1024;
const PATIENCE_MS = 120_000;
const CONTROL_OR_BIDI = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;

/** Error_ids that a service can give the n-th failure. */
const KINDS: readonly ((n: number) => string | null)[] = [
  (n) => `E${n}`,
  (n) => `\u202e${n}\u2066\u200b`,
  (n) => `\0\u001b[31m${n}\r\n# HELP x`,
  (n) => `${n}"} 1\nevalwatch_up{project="beta`,
  () => 'none',
  () => 'other',
  (n) => `${n}${'\u{1f600}'.repeat(n % 1000 === 6 ? 16 * 1024 : 128)}`,
  (n) => `${'same '.repeat(40)}${n}`,
  (n) => `${n}\ud83d`,
  () => null,
];

/**
 * Settles failures with ever new error_ids, until most of them are older than the retention.
 * @throws if a project has too many series, settlements become slower, the store grows, or a scrape is broken
 */
export async function countErrorIds({
  short,
  print,
  source = SOURCE,
}: RowOptions): Promise<Figures> {
  const form = short ? FORMS.short : FORMS.long;
  const { readErrorInfo } = (await import(
    join(source, 'evaluation-api/error-info.ts')
  )) as typeof ErrorInfoRoom;

  /** Reads a settlement as the daemon does from the service's answer. */
  function settlementOf(n: number): Settlement {
    const info = { error_id: KINDS[n % KINDS.length]?.(n), error_msg: `hostile ${n}` };
    const body = Buffer.from(JSON.stringify({ error_info: info }));
    const found = readErrorInfo(body, (text) => text);
    if (found === undefined) throw new Error('no error_info');
    return found;
  }

  async function besiegeSqlite(): Promise<Figures> {
    await using directory = await temporaryDirectory();
    const path = join(directory.path, 'evalwatch.db');
    const { openStore } = (await import(
      join(source, 'store/sqlite/sqlite-store.ts')
    )) as typeof SqliteRoom;
    const store = await openStore({ path, clock: systemClock, emit: () => {} });
    const rounds = await fail(store, form.sqlite, settlementOf, async () => {
      const { database, wal = 0 } = await store.size();
      return database + wal;
    });
    await store.close();
    const figures = judge('SQLite', rounds, form.sqlite, short);
    return [...figures, ...(await scrapeDaemon(directory.path, source, form.sqlite))];
  }

  async function besiegePostgres(): Promise<Figures> {
    if (source !== SOURCE) return [];
    required('PostgreSQL', postgresPrograms());
    await using server = await startPostgres();
    const { name, url } = await server.createDatabase();
    await using worker = await startWorker(url);
    await worker.store.configureProjects([PROJECT], 1);
    await worker.claim([PROJECT]);
    const size = async () => {
      await server.query(name, 'VACUUM');
      return (await worker.store.size()).database;
    };
    const rounds = await fail(worker.store, form.postgres, settlementOf, size);
    return judge('PostgreSQL', rounds, form.postgres, short);
  }

  const sqlite = await besiegeSqlite();
  print('error_ids in SQLite');
  return [...sqlite, ...(await besiegePostgres())];
}

interface Round {
  /** CPU time of this process for each settlement, µs. */
  readonly cost: number;
  readonly bytes: number;
  readonly labels: readonly string[];
  readonly counted: number;
}

/** Lets the prompts fail in each round. Rounds are an hour apart, the last one an hour ago. */
async function fail(
  store: Store,
  { rounds, failures }: Size,
  settlementOf: (n: number) => Settlement,
  sizeOf: () => Promise<number>,
): Promise<readonly Round[]> {
  const started = Date.now() - rounds * HOUR;
  await store.configureProjects([PROJECT], started);
  const found: Round[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const at = started + round * HOUR;
    await store.prune({ before: at - rounds * KEPT * HOUR, firstDay: 0 });
    await see(store, 'RUNNING', failures, at);
    const failed = await see(store, 'FAILED', failures, at);
    const settlements = failed.map((_, index) => settlementOf(round * failures + index));
    const before = process.cpuUsage();
    await Promise.all(
      failed.map((failure, index) =>
        store.settleFailure(failure, settlements[index] as Settlement, at),
      ),
    );
    const { user, system } = process.cpuUsage(before);
    const { projects } = await store.snapshot();
    const errors = projects[0]?.listings.get('prompt')?.errors ?? [];
    found.push({
      cost: (user + system) / failures,
      bytes: await sizeOf(),
      labels: errors.map(({ label }) => label),
      counted: errors.reduce((sum, { count }) => sum + count, 0),
    });
  }
  return found;
}

async function see(
  store: Store,
  status: string,
  prompts: number,
  at: number,
): Promise<readonly FailureKey[]> {
  const statuses = Object.fromEntries(Array.from({ length: prompts }, (_, n) => [`p${n}`, status]));
  const { version, token, listings } = await store.loadKnown(PROJECT, ['prompt']);
  const known = listings.get('prompt') ?? { baselined: false, records: new Map() };
  const changes = detectChanges(known, listingOf(statuses), { at, missingAfter: 2 });
  const committed = await store.commitPoll({
    project: PROJECT,
    at,
    health: healthAt(at),
    version,
    token,
    listings: new Map([['prompt', changes]]),
  });
  return (committed ?? []).map(({ transitionId, id }) => {
    return { transitionId, foundAt: at, promptId: id };
  });
}

function judge(
  engine: string,
  rounds: readonly Round[],
  { failures }: Size,
  short: boolean,
): Figures {
  const kept = Math.ceil(rounds.length * KEPT);
  const full = rounds.slice(kept + 1);
  const [before, after] = [rounds.slice(kept + 1, 2 * kept + 1), rounds.slice(-kept)];
  const cost = [before, after].map((part) => median(part.map((round) => round.cost)));
  const [early = NaN, late = NaN] = cost;
  const bytes = full.map((round) => round.bytes);
  const most = Math.max(...rounds.map(({ labels }) => labels.length));
  const [first] = rounds;
  const last = rounds.at(-1);
  if (first === undefined || last === undefined) throw new Error('no rounds');
  if (most > MAX_SERIES) throw new Error(`${engine}: ${most} series of one project`);
  if (first.labels.length < MAX_SERIES) {
    throw new Error(`${engine}: only ${first.labels.length} series: ${first.labels.join()}`);
  }
  if (first.counted !== failures) {
    throw new Error(`${engine}: ${first.counted} of ${failures} failures are counted`);
  }
  const forgotten = new Set(first.labels).difference(new Set(last.labels)).size;
  // One stays: many error_ids are cut to the same text.
  if (forgotten !== MAX_LABELS - 1) {
    throw new Error(`${engine}: ${forgotten} of ${MAX_LABELS - 1} error_ids were given up`);
  }
  const [smallest, largest] = [Math.min(...bytes), Math.max(...bytes)];
  if (largest > smallest * MAX_STORE_GROWTH + LOG_BYTES) {
    throw new Error(`${engine}: the store grew from ${smallest} to ${largest} bytes`);
  }
  // A short run is too short, or runs beside too much, to judge times.
  if (!short && late > early * MAX_COST_GROWTH) {
    throw new Error(`${engine}: a settlement took ${early} µs, later ${late} µs`);
  }
  return [
    [
      `failures with hostile error_ids, ${engine}`,
      `${rounds.length * failures}: at most ${most} series`,
    ],
    [
      `µs of CPU time a settlement, ${engine}`,
      `${median(rounds.slice(0, kept).map((round) => round.cost)).toFixed(0)} at first, then ${early.toFixed(0)}, at the end ${late.toFixed(0)}`,
    ],
    [
      `store, ${engine}`,
      `${mib(first.bytes)} MiB after the first round, ${mib(smallest)} to ${mib(largest)} MiB once retention has begun`,
    ],
  ];
}

async function scrapeDaemon(directory: string, source: string, { rounds }: Size): Promise<Figures> {
  const config = await writeConfiguration(
    directory,
    'http://127.0.0.1:9',
    [{ id: PROJECT, datasets: false }],
    { schedule: '0 0 1 1 *', service: { retries: 0 } },
  );
  const daemon = startDaemon(config, () => {}, { source });
  try {
    if (!(await until(() => daemon.url() !== undefined, PATIENCE_MS))) {
      throw new Error(`the daemon did not start: ${daemon.garbled.join('\n').slice(0, 500)}`);
    }
    const url = daemon.url() ?? '';
    const { text, samples } = await scrape(url);
    const series = [...samples.keys()].filter((name) =>
      name.startsWith('evalwatch_prompt_failures_total{'),
    );
    const forged = [...samples.keys()].filter((name) => name.includes('project="beta"'));
    if (series.length !== MAX_SERIES) throw new Error(`${series.length} series in a scrape`);
    if (forged.length > 0 || CONTROL_OR_BIDI.test(text)) {
      throw new Error(`the scrape shows a control or bidi character, or ${forged.join()}`);
    }
    const complaints = hasPromtool() ? await promtoolComplaints(text) : ['(no promtool)'];
    if (complaints.length > 0 && hasPromtool()) throw new Error(complaints.join('\n'));
    return [
      [
        'a scrape of the whole daemon',
        `${series.length} series, ${text.length} characters; promtool has ${complaints.length} complaints`,
      ],
      ['/api/v1/causes', await askCauses(url, rounds)],
    ];
  } finally {
    await daemon.stop('SIGKILL');
  }
}

/** Requests the causes of all stored failures, and probes the daemon's health meanwhile. */
async function askCauses(url: string, hours: number): Promise<string> {
  let slowest = 0;
  const over = new AbortController();
  const probing = (async () => {
    while (!over.signal.aborted) {
      const at = performance.now();
      await (await fetch(`${url}/-/healthy`)).text();
      slowest = Math.max(slowest, performance.now() - at);
      await setTimeout(20);
    }
  })();
  const started = performance.now();
  const answer = await fetch(`${url}/api/v1/causes?limit=1000&since=${hours + 1}h`);
  const text = await answer.text();
  const took = performance.now() - started;
  over.abort();
  await probing;
  const { data } = JSON.parse(text) as { data: readonly { readonly count: number }[] };
  const failures = data.reduce((sum, { count }) => sum + count, 0);
  if (answer.status !== 200 || failures === 0) throw new Error(text.slice(0, 500));
  return `${data.length} rows of ${failures} failures, ${mib(text.length)} MiB, after ${took.toFixed(0)} ms; a probe meanwhile took ${slowest.toFixed(0)} ms at most`;
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? NaN;
}

function mib(bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(1);
}
