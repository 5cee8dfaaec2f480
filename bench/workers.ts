/** Workers of the shipped sources with PostgreSQL on the same machine. */
import { execFileSync } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { postgresPrograms, startPostgres } from '../test/support/postgres.ts';
import { temporaryDirectory } from '../test/support/temporary.ts';
import { sumOf } from './daemons.ts';
import {
  countLines,
  cpuMsOf,
  type Daemon,
  memoryOf,
  missing,
  SOURCE,
  startDaemon,
  startService,
  writeConfiguration,
} from './processes.ts';
import { line, NEVER, type Row } from './report.ts';
import type { Counts } from './service.ts';
import { projectIds } from './workload.ts';

/** Settings of the server, as in docs/scaling.md. */
const SETTINGS = ['shared_buffers=512MB', 'max_wal_size=4GB', 'wal_compression=zstd'];
const SCRAPE_EVERY_S = 15;
const TICKS_A_SECOND = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
const ORPHANS = `SELECT 1 FROM evalwatch.project p WHERE NOT EXISTS (
  SELECT FROM evalwatch.worker w WHERE w.worker = p.owner AND w.expires_at > now())`;
const COSTS = `SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 AS wal,
  n_tup_upd::float8 AS updates, n_tup_hot_upd::float8 AS hot
  FROM pg_stat_user_tables WHERE relid = 'evalwatch.project'::regclass`;

export const workers: Row = {
  name: 'workers',
  title:
    'several workers share projects of which every fifth poll finds 1 % changed; one is killed',
  measure: async function* ({ seconds, workers: { count, projects, prompts, every, warmUp } }) {
    if (postgresPrograms() === undefined) {
      missing('workers, which need PostgreSQL');
      return;
    }
    await using opened = new AsyncDisposableStack();
    const directory = opened.use(await temporaryDirectory());
    const server = opened.use(await startPostgres({ fsync: true, settings: SETTINGS }));
    const database = await server.createDatabase();
    const query = (text: string) => server.query(database.name, text);
    const listings = { projects, prompts, versions: 8, pollsEach: 5, everyMs: every * 1000 };
    const service = opened.use(startService({ ...listings, isShared: true, sendsEtag: true }));
    const serviceUrl = await service.line();
    const running: Daemon[] = [];
    while (running.length < count) {
      const place = join(directory.path, `worker-${running.length}`);
      await mkdir(place);
      await writeFile(join(place, 'url'), database.url);
      const config = await writeConfiguration(place, serviceUrl, projectIds(projects), {
        schedule: every < 60 ? `*/${every} * * * * *` : `*/${every / 60} * * * *`,
        jitter: `${every}s`,
        store: { postgres_url_file: 'url' },
        log: { level: 'info' },
      });
      running.push(opened.use(await startDaemon(SOURCE, config)));
    }
    const lines = running.map(countLines);
    const counters = async () => {
      // The statistics of the server are up to a second late.
      await setTimeout(2000);
      const [row] = await query(COSTS);
      const workerCpu = await Promise.all(running.map(({ pid }) => cpuMsOf(pid)));
      return {
        at: performance.now(),
        ...((await (await fetch(`${serviceUrl}/counts`)).json()) as Counts),
        exposition: (await Promise.all(running.map(({ url }) => scrape(url)))).join(''),
        server: await cpuMsOfServer(server.pid()),
        workers: workerCpu.reduce((sum, ms) => sum + ms, 0),
        ...(row as Record<'wal' | 'updates' | 'hot', number>),
      };
    };

    while ((await query(ORPHANS)).length > 0) await setTimeout(1000);
    // The first polls, of all projects at once, are not measured.
    await scrapeFor(running, warmUp);
    await fetch(`${serviceUrl}/reset`);
    const before = await counters();
    const scrapes = await scrapeFor(running, seconds);
    const after = await counters();
    const peaks = await Promise.all(running.map(({ pid }) => memoryOf(pid, 'VmHWM')));
    // Each failure of a prompt is a line of level error.
    const errors = lines.reduce((sum, of) => sum + of('error') - of('prompt.failed'), 0);

    const killed = performance.now();
    await running[0]?.[Symbol.asyncDispose]();
    while ((await query(ORPHANS)).length === 0) await setTimeout(200);
    while ((await query(ORPHANS)).length > 0) await setTimeout(200);
    const takeoverS = (performance.now() - killed) / 1000;

    const polls = after.polls - before.polls;
    const a = (cost: 'server' | 'workers' | 'wal') => (after[cost] - before[cost]) / polls;
    const grown = (series: string) =>
      sumOf(after.exposition, `evalwatch_${series}`) -
      sumOf(before.exposition, `evalwatch_${series}`);
    const lag = 'scheduler_lag_seconds';
    const within = (le: string) =>
      (100 * grown(`${lag}_bucket{le="${le}"}`)) / grown(`${lag}_count`);
    const hot = (100 * (after.hot - before.hot)) / (after.updates - before.updates);
    const isLarge = projects >= 10_000;
    // 0.5 % are left for the start and the end of the measured time.
    const least = (projects / every) * 0.995;
    yield {
      size: `${count} workers, ${projects} projects of ${prompts} prompts every ${every} s, ${seconds} s`,
      lines: [
        line('polls a second', (1000 * polls) / (after.at - before.at), '', { least }),
        line('ticks polled twice', after.doubled, '', NEVER),
        line('commits refused', grown('store_commits_refused_total'), '', NEVER),
        line('polls failed', grown('poll_failures_total'), '', NEVER),
        line('runs skipped', grown('scheduler_overlapped_runs_total'), '', NEVER),
        line('runs missed', grown('scheduler_missed_runs_total'), '', NEVER),
        line('polls begun within 10 ms', within('0.01'), '%'),
        line('polls begun within 100 ms', within('0.1'), '%', isLarge ? {} : { least: 99 }),
        line('polls begun within 1 s', within('1'), '%', isLarge ? { least: 99 } : {}),
        line('CPU of PostgreSQL a poll', a('server'), 'ms'),
        line('CPU of the workers a poll, with scrapes', a('workers'), 'ms'),
        line('write-ahead log a poll', a('wal'), 'B'),
        line('updates of projects that are HOT', hot, '%', { least: 95 }),
        line('scrapes not answered', scrapes.lost, '', NEVER),
        line('largest scrape', scrapes.largest / 1e6, 'MB'),
        line('longest block of an event loop', scrapes.longestBlockMs, 'ms'),
        line('peak memory of a worker', Math.max(...peaks) / 1e6, 'MB'),
        line('errors logged', errors, '', NEVER),
        line('projects of a killed worker owned again after', takeoverS, 's', { most: 20 }),
      ],
    };
  },
};

/** Scrapes the workers for this time, as Prometheus does. */
async function scrapeFor(running: readonly Daemon[], seconds: number) {
  const end = performance.now() + seconds * 1000;
  let largest = 0;
  let lost = 0;
  let longestBlockMs = 0;
  for (let left = seconds * 1000; left > 0; left = end - performance.now()) {
    await setTimeout(Math.min(left, SCRAPE_EVERY_S * 1000));
    for (const { url } of running) {
      const text = await scrape(url).catch(() => '');
      if (text === '') lost += 1;
      largest = Math.max(largest, text.length);
      const blockS = sumOf(text, 'nodejs_eventloop_lag_max_seconds');
      longestBlockMs = Math.max(longestBlockMs, 1000 * blockS);
    }
  }
  return { largest, lost, longestBlockMs };
}

async function scrape(url: string): Promise<string> {
  const response = await fetch(`${url}/metrics`);
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return await response.text();
}

/** Returns the CPU time of a PostgreSQL server and all its processes, also ended ones, ms. */
async function cpuMsOfServer(postmaster: number): Promise<number> {
  let ticks = 0;
  for (const pid of await readdir('/proc')) {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
    // The second field is a name in parentheses, which may contain any character.
    const fields = stat
      .replace(/^.*\) /, '')
      .split(' ')
      .map(Number);
    const [, parent, , , , , , , , , , user = 0, system = 0, ended = 0, endedSystem = 0] = fields;
    if (Number(pid) === postmaster) ticks += user + system + ended + endedSystem;
    else if (parent === postmaster) ticks += user + system;
  }
  return (1000 * ticks) / TICKS_A_SECOND;
}
