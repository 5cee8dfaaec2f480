/**
 * Measures several workers on one PostgreSQL and prints each figure beside its bound:
 * `node bench/workers/workers.ts [--projects 1000] [--prompts 100] [--every 5] [--workers 3] [--warm-up 90] [--seconds 600]
 * [--scrape 15]`; times in seconds. At the end one worker is killed.
 */
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { get, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startPostgres } from '../../test/support/postgres.ts';
import { NODE_FLAGS } from '../../test/support/node-flags.ts';
import {
  cpuMsOf,
  memoryOf,
  type NodeProcess,
  ROOT,
  startNode,
  startNodeWith,
} from '../node-process.ts';
import { report, reportPolls, serverCounters } from '../postgres/figures.ts';
import { SETTINGS } from '../postgres/settings.ts';
import { SOURCE } from '../rows/daemon.ts';
import { median } from '../statistics.ts';
import { projectIds } from '../workload.ts';
import type { Counts } from './service.ts';

const { values } = parseArgs({
  options: {
    projects: { type: 'string', default: '1000' },
    prompts: { type: 'string', default: '100' },
    every: { type: 'string', default: '5' },
    workers: { type: 'string', default: '3' },
    'warm-up': { type: 'string' },
    seconds: { type: 'string', default: '600' },
    scrape: { type: 'string', default: '15' },
  },
});
const projects = Number(values.projects);
const every = Number(values.every);
const seconds = Number(values.seconds);
/** Long enough for PostgreSQL to count the rows of new tables, which it does once a minute. */
const warmUp = Number(values['warm-up'] ?? Math.max(2 * every, 90));
/** Whether 99 % of the polls must begin within 1 s, not 100 ms. Costs have bounds only if this is true and isHuge is false. */
const isLarge = projects >= 10_000;
const isHuge = projects >= 100_000;
/** Polls per second by the schedules, without 0.5 % for the start and the end of the measured time. */
const leastPolls = (projects / every) * 0.995;

const SERIES = /^[a-z].*$/gm;
/** Matches name and value of the series that are added up. Parsing all would take too long. */
const COUNTED =
  /^(evalwatch_(?:scheduler_lag_seconds_count|store_commits_refused_total|poll_failures_total|api_retries_total|scheduler_(?:overlapped|missed)_runs_total|scheduler_lag_seconds_bucket\{le="[\d.]+"\}))(?:\{[^}]*\})? (\S+)$/gm;

await using opened = new AsyncDisposableStack();
const directory = await mkdtemp(join(tmpdir(), 'evalwatch-workers-'));
opened.defer(() => rm(directory, { recursive: true, force: true }));
const postgres = opened.use(await startPostgres({ fsync: true, settings: SETTINGS }));
const database = await postgres.createDatabase();
const service = opened.use(
  startNode('bench/workers/service.ts', String(every * 1000), values.prompts),
);
const serviceUrl = await service.line('http');
let errors = 0;
/** Scrapes that a worker refused or cut off. */
let lostScrapes = 0;
/** Longest block of the event loop in each scrape, ms. */
const blocks: number[] = [];
const workers = await Promise.all(
  Array.from({ length: Number(values.workers) }, (_, n) => startWorker(`worker-${n}`)),
);

await untilShared();
// The first polls, of all projects at once, are not measured.
await pass(warmUp);
await fetch(`${serviceUrl}/reset`);
blocks.length = 0;
lostScrapes = 0;
const before = await counters();
await pass(seconds);
const after = await counters();
const polls = after.polls - before.polls;

const lags = after.lags - before.lags;
const perSecond = polls / ((after.at - before.at) / 1000);
report('polls a second', '', perSecond, { least: leastPolls });
report('ticks polled twice', '', after.doubled, { most: 0 });
for (const bound of ['0.01', '0.05', '0.1', '1'] as const) {
  const within = (100 * (after.within[bound] - before.within[bound])) / lags;
  const isBound = isLarge ? bound === '1' : bound === '0.1';
  report(
    `polls begun within ${Number(bound) * 1000} ms`,
    '%',
    within,
    isBound ? { least: 99 } : {},
  );
}
reportPolls(before.server, after.server, polls, isLarge && !isHuge);
report('CPU of the workers a poll', 'ms', (after.workerCpu - before.workerCpu) / polls);
report('commits refused', '', after.refused - before.refused, { most: 0 });
report('polls failed', '', after.failed - before.failed, { most: 0 });
report('requests sent again', '', after.retries - before.retries);
report('runs skipped or missed', '', after.skipped - before.skipped, { most: 0 });
report('errors logged', '', errors, { most: 0 });
report('scrapes refused or cut off', '', lostScrapes, { most: 0 });
await reportScrapes();
await reportTakeover();

/** Prints the cost of the scrapes, beside the bounds for many projects. */
async function reportScrapes(): Promise<void> {
  const bound = (most: number) => (isLarge && !isHuge ? { most } : {});
  const plain = await Promise.all(workers.map(({ url }) => scrape(url, 'identity')));
  const zipped = await Promise.all(workers.map(({ url }) => scrape(url, 'gzip')));
  const memory = await Promise.all(workers.map(({ process }) => memoryOf(process.pid, 'VmRSS')));
  const peaks = await Promise.all(workers.map(({ process }) => memoryOf(process.pid, 'VmHWM')));
  const series = plain.map((bytes) => bytes.toString().match(SERIES)?.length ?? 0);
  const megabytes = (all: readonly number[]) => Math.max(...all) / 1e6;
  const lengths = (answers: readonly Buffer[]) => answers.map(({ length }) => length);
  report('a scrape', 'MB', megabytes(lengths(plain)), bound(22));
  report('a scrape in gzip', 'MB', megabytes(lengths(zipped)), bound(2));
  report('longest block of a scrape', 'ms', Math.max(...blocks), bound(15));
  report('median of the longest block of each scrape', 'ms', median(blocks));
  report('memory of a worker', 'MB', megabytes(memory), isHuge ? { most: 1500 } : bound(450));
  report('peak memory of a worker', 'MB', megabytes(peaks));
  report(
    'series of all workers',
    '',
    series.reduce((sum, count) => sum + count, 0),
    bound(850_000),
  );
}

/** Kills a worker and prints the time until all its projects have other owners, which poll due projects at once. */
async function reportTakeover(): Promise<void> {
  const [victim, ...others] = workers;
  if (victim === undefined || others.length === 0) return;
  const orphans = async () => {
    const [row] = await postgres.query(
      database.name,
      `SELECT count(*)::integer AS orphans FROM evalwatch.project p WHERE NOT EXISTS (
         SELECT FROM evalwatch.worker w WHERE w.worker = p.owner AND w.expires_at > now())`,
    );
    return Number(row?.['orphans']);
  };
  const killed = performance.now();
  globalThis.process.kill(victim.process.pid, 'SIGKILL');
  while ((await orphans()) === 0) await setTimeout(200);
  while ((await orphans()) > 0) await setTimeout(200);
  const tookS = (performance.now() - killed) / 1000;
  report('projects of a killed worker owned again after', 's', tookS, { most: 20 });
}

/** Returns the bytes of the exposition as they are sent. */
async function scrape(url: string, encoding: 'gzip' | 'identity'): Promise<Buffer> {
  const request = get(`${url}/metrics`, { headers: { 'accept-encoding': encoding } });
  // A connection that is cut later also rejects the read.
  request.on('error', () => {});
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  if (response.statusCode !== 200) throw new Error(`${url} answered ${response.statusCode}`);
  return await buffer(response);
}

interface StartedWorker {
  readonly process: NodeProcess;
  readonly url: string;
  /** File with the longest block of its event loop since the last SIGUSR2, ms. */
  readonly blockFile: string;
}

async function startWorker(name: string): Promise<StartedWorker> {
  const place = join(directory, name);
  await mkdir(place);
  await writeFile(join(place, 'key'), 'bench-bench-bench');
  await writeFile(join(place, 'url'), database.url);
  const config = join(place, 'evalwatch.yaml');
  // JSON is valid YAML.
  await writeFile(
    config,
    JSON.stringify({
      service: { base_url: serviceUrl, api_key_file: 'key', max_requests_per_second: 0 },
      schedule: every < 60 ? `*/${every} * * * * *` : `*/${every / 60} * * * *`,
      jitter: `${every}s`,
      projects: projectIds(projects).map((id) => ({ id })),
      store: { postgres_url_file: 'url' },
      web: { listen: '127.0.0.1:0' },
    }),
  );
  const blockFile = join(place, 'block');
  const flags = [...NODE_FLAGS, '--import', join(ROOT, 'proof/hostile/block-probe.ts')];
  const env = { BLOCK_FILE: blockFile };
  const process = opened.use(startNodeWith({ flags, env }, SOURCE, 'run', '--config', config));
  const started = JSON.parse(await process.line('"daemon.started"')) as { readonly url: string };
  void drain(process);
  return { process, url: started.url, blockFile };
}

/** Waits this time, and scrapes the workers meanwhile as Prometheus does. */
async function pass(forSeconds: number): Promise<void> {
  const interval = Number(values.scrape);
  const end = performance.now() + forSeconds * 1000;
  for (;;) {
    const left = end - performance.now();
    if (left <= 0) return;
    await setTimeout(Math.min(left, interval * 1000));
    for (const worker of workers) await scrapeAsPrometheus(worker);
  }
}

/** Scrapes a worker, and records the longest block of its event loop meanwhile. */
async function scrapeAsPrometheus({ url, process: { pid }, blockFile }: StartedWorker) {
  process.kill(pid, 'SIGUSR2');
  try {
    await scrape(url, 'gzip');
  } catch {
    lostScrapes += 1;
  }
  // Waits until the probe has written.
  await setTimeout(300);
  blocks.push(Number(await readFile(blockFile, 'utf8')));
}

/** Reads the lines of a daemon, which would block otherwise, and prints its errors. */
async function drain(process: NodeProcess): Promise<void> {
  try {
    for (;;) {
      const line = await process.line('"level":"error"');
      if (line.includes('"event":"prompt.failed"')) continue;
      errors += 1;
      console.log(line.slice(0, 300));
    }
  } catch {
    // The process has ended.
  }
}

/** Waits until each worker owns a fair share. Reads it from the database, which is less work than scrapes. */
async function untilShared(): Promise<void> {
  const share = Math.ceil(projects / workers.length);
  for (;;) {
    const owners = await postgres.query(
      database.name,
      'SELECT count(*)::integer AS owned FROM evalwatch.project WHERE owner IS NOT NULL GROUP BY owner',
    );
    const owned = owners.map((row) => Number(row['owned']));
    if (owned.length === workers.length && owned.every((count) => count <= share)) {
      if (owned.reduce((sum, count) => sum + count, 0) === projects) return;
    }
    await setTimeout(1000);
  }
}

/** Returns the text of a scrape. Retries up to 5 times if the worker is busy. */
async function exposition(url: string): Promise<string> {
  for (let tries = 5; ; tries -= 1) {
    try {
      return (await scrape(url, 'identity')).toString();
    } catch (error) {
      if (tries === 0) throw error;
    }
  }
}

async function counters() {
  const texts: string[] = [];
  for (const { url } of workers) texts.push(await exposition(url));
  const found = texts.flatMap((text) => [...text.matchAll(COUNTED)]);
  const sum = (name: string) =>
    found
      .filter(([, series]) => series === name)
      .reduce((total, [, , value]) => total + Number(value), 0);
  const lagsWithin = (le: string) => sum(`evalwatch_scheduler_lag_seconds_bucket{le="${le}"}`);
  const asked = (await (await fetch(`${serviceUrl}/counts`)).json()) as Counts;
  const workerCpu = await Promise.all(workers.map(({ process }) => cpuMsOf(process.pid)));
  return {
    at: performance.now(),
    ...asked,
    lags: sum('evalwatch_scheduler_lag_seconds_count'),
    within: {
      '0.01': lagsWithin('0.01'),
      '0.05': lagsWithin('0.05'),
      '0.1': lagsWithin('0.1'),
      '1': lagsWithin('1'),
    },
    refused: sum('evalwatch_store_commits_refused_total'),
    failed: sum('evalwatch_poll_failures_total'),
    retries: sum('evalwatch_api_retries_total'),
    skipped:
      sum('evalwatch_scheduler_overlapped_runs_total') +
      sum('evalwatch_scheduler_missed_runs_total'),
    server: await serverCounters(postgres, database.name),
    workerCpu: workerCpu.reduce((total, ms) => total + ms, 0),
  };
}
