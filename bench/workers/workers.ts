/**
 * Measures several workers on one PostgreSQL and prints each figure beside its bound:
 * `node bench/workers/workers.ts [--projects 1000] [--every 5] [--workers 3] [--seconds 600] [--scrape 15]`; seconds.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startPostgres } from '../../test/support/postgres.ts';
import { cpuMsOf, type NodeProcess, startNode } from '../node-process.ts';
import { report, reportPolls, serverCounters } from '../postgres/figures.ts';
import { SETTINGS } from '../postgres/settings.ts';
import { SOURCE } from '../rows/daemon.ts';
import { projectIds } from '../workload.ts';
import type { Counts } from './service.ts';

const { values } = parseArgs({
  options: {
    projects: { type: 'string', default: '1000' },
    every: { type: 'string', default: '5' },
    workers: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '600' },
    scrape: { type: 'string', default: '15' },
  },
});
const projects = Number(values.projects);
const every = Number(values.every);
const seconds = Number(values.seconds);
/** Until PostgreSQL has counted the rows of new tables, which it does once a minute, at least. */
const WARM_UP_S = 90;
/** A poll's cost is bound at this size, its lag at the smaller one. */
const isLarge = projects >= 10_000;
/** What the schedules ask for, a second; a little is lost where the time that is measured begins and ends. */
const leastPolls = (projects / every) * 0.995;

/** Name and value of the series that are counted; a reading of all 790,000 would take too long. */
const COUNTED =
  /^(evalwatch_(?:scheduler_lag_seconds_count|store_commits_refused_total|poll_failures_total|api_retries_total|scheduler_(?:overlapped|missed)_runs_total|scheduler_lag_seconds_bucket\{le="[\d.]+"\}))(?:\{[^}]*\})? (\S+)$/gm;

await using opened = new AsyncDisposableStack();
const directory = await mkdtemp(join(tmpdir(), 'evalwatch-workers-'));
opened.defer(() => rm(directory, { recursive: true, force: true }));
const postgres = opened.use(await startPostgres({ fsync: true, settings: SETTINGS }));
const database = await postgres.createDatabase();
const service = opened.use(startNode('bench/workers/service.ts', String(every * 1000)));
const serviceUrl = await service.line('http');
let errors = 0;
const workers = await Promise.all(
  Array.from({ length: Number(values.workers) }, (_, n) => startWorker(`worker-${n}`)),
);

await untilShared();
// The first polls, of all at once, are not what is measured.
await pass(Math.max(2 * every, WARM_UP_S));
await fetch(`${serviceUrl}/reset`);
const before = await counters();
await pass(seconds);
const after = await counters();
const polls = after.polls - before.polls;

const lags = after.lags - before.lags;
const perSecond = polls / ((after.at - before.at) / 1000);
report('polls a second', '', perSecond, { least: leastPolls });
report('ticks polled twice', '', after.doubled, { most: 0 });
for (const bound of ['0.01', '0.05', '0.1'] as const) {
  const within = (100 * (after.within[bound] - before.within[bound])) / lags;
  const isBound = !isLarge && bound === '0.1';
  report(
    `polls begun within ${Number(bound) * 1000} ms`,
    '%',
    within,
    isBound ? { least: 99 } : {},
  );
}
reportPolls(before.server, after.server, polls, isLarge);
report('CPU of the workers a poll', 'ms', (after.workerCpu - before.workerCpu) / polls);
report('commits refused', '', after.refused - before.refused, { most: 0 });
report('polls failed', '', after.failed - before.failed, { most: 0 });
report('requests sent again', '', after.retries - before.retries);
report('runs skipped or missed', '', after.skipped - before.skipped, { most: 0 });
report('errors logged', '', errors, { most: 0 });

async function startWorker(
  name: string,
): Promise<{ readonly process: NodeProcess; readonly url: string }> {
  const place = join(directory, name);
  await mkdir(place);
  await writeFile(join(place, 'key'), 'bench-bench-bench');
  await writeFile(join(place, 'url'), database.url);
  const config = join(place, 'evalwatch.yaml');
  // YAML is JSON too.
  await writeFile(
    config,
    JSON.stringify({
      service: { base_url: serviceUrl, api_key_file: 'key', max_requests_per_second: 0 },
      schedule: `*/${every} * * * * *`,
      jitter: `${every}s`,
      projects: projectIds(projects).map((id) => ({ id })),
      store: { postgres_url_file: 'url' },
      web: { listen: '127.0.0.1:0' },
    }),
  );
  const process = opened.use(startNode(SOURCE, 'run', '--config', config));
  const started = JSON.parse(await process.line('"daemon.started"')) as { readonly url: string };
  void drain(process);
  return { process, url: started.url };
}

/** Lets this time pass, in which the workers are scraped as by a Prometheus. */
async function pass(forSeconds: number): Promise<void> {
  const interval = Number(values.scrape);
  const end = performance.now() + forSeconds * 1000;
  for (;;) {
    const left = end - performance.now();
    if (left <= 0) return;
    await setTimeout(Math.min(left, interval * 1000));
    for (const { url } of workers) await (await fetch(`${url}/metrics`)).arrayBuffer();
  }
}

/** A daemon whose lines nobody reads stands still; its errors are shown. */
async function drain(process: NodeProcess): Promise<void> {
  try {
    for (;;) {
      const line = await process.line('"level":"error"');
      if (line.includes('"event":"prompt.failed"')) continue;
      errors += 1;
      console.log(line.slice(0, 300));
    }
  } catch {
    // It has ended.
  }
}

/** Until each worker has a fair share; a scrape of all their projects would be more work than this. */
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

async function counters() {
  const texts: string[] = [];
  for (const { url } of workers) texts.push(await (await fetch(`${url}/metrics`)).text());
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
    within: { '0.01': lagsWithin('0.01'), '0.05': lagsWithin('0.05'), '0.1': lagsWithin('0.1') },
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
