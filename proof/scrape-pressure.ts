import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { json } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startSimulator } from '../src/simulator/server.ts';
import { World } from '../src/simulator/world/world.ts';
import { NODE_FLAGS } from '../test/support/node-flags.ts';
import { scrape } from '../test/support/scrape.ts';
import { KEY, writeConfiguration } from '../test/support/soak/configuration.ts';
import { temporaryDirectory } from '../test/support/temporary.ts';
import { type Row, SOURCE } from './row.ts';
import type { Crowd } from './scrape-pressure/crowd.ts';
import { storeLargeFailures } from './scrape-pressure/large-failures.ts';
import type { Siege } from './scrape-pressure/siege.ts';
import { visit, type Visits } from './scrape-pressure/visits.ts';

const CROWD = fileURLToPath(new URL('scrape-pressure/crowd.ts', import.meta.url));
const SIEGE = fileURLToPath(new URL('scrape-pressure/siege.ts', import.meta.url));
/** Loopback has many addresses: the siege comes from the first one. */
const ADDRESSES = ['127.0.0.1', '127.0.0.2'] as const;
const LARGE = 'large failures';
const PROJECTS = { short: 8, long: 40 };
const PARALLEL = 200;
const SLOW_CLIENTS = 1000;
/**
 * Maximum delay of a poll in s, memory, time of a response, which the daemon aborts after 15 s, and missed runs. The short
 * form has loose limits, as others use the same cores.
 */
const LIMITS = {
  // Half of the memory that config/kubernetes grants.
  long: { lateSeconds: 1, rssMib: 512, answerMs: 16_000, missed: 0 },
  short: { lateSeconds: 60, rssMib: 1000, answerMs: 60_000, missed: Infinity },
};

/**
 * Polls every project each second while a crowd, some of it slow, scrapes /metrics, and then clients request whatever is
 * large or expensive.
 */
export const scrapePressure: Row = {
  name: 'scrape-pressure',
  run: async ({ short, print, source = SOURCE }) => {
    await using directory = await temporaryDirectory();
    await using opened = new AsyncDisposableStack();
    const polled = short ? PROJECTS.short : PROJECTS.long;
    const projects = Array.from({ length: polled }, (_, n) => `project ${n}`);
    const world = new World({ now: () => Date.now(), seed: 1, projects, promptsPerProject: 20 });
    const simulator = await startSimulator({ world, keys: KEY });
    opened.defer(() => simulator.close());
    await storeLargeFailures(directory.path, LARGE);
    const config = await writeConfiguration(directory.path, simulator.url, [
      ...projects.map((id) => ({ id, datasets: true })),
      { id: LARGE, datasets: false, schedule: '0 0 1 1 *' },
    ]);
    const child = spawn(
      process.execPath,
      [...NODE_FLAGS, join(source, 'main.js'), 'run', '--config', config],
      {
        env: { PATH: process.env['PATH'] },
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    opened.defer(() => void child.kill('SIGKILL'));
    const started = Promise.withResolvers<string>();
    createInterface(child.stdout).on('line', (line) => {
      const { event, url } = JSON.parse(line) as { event: string; url: string };
      if (event === 'daemon.started') started.resolve(url);
    });
    const url = await started.promise;
    await setTimeout(short ? 2000 : 5000);
    const quiet = await scrape(url);
    const quietRss = await rssOf(child.pid);

    const seconds = short ? 3 : 40;
    const visitors = spawn(
      process.execPath,
      [CROWD, url, String(PARALLEL), String(SLOW_CLIENTS), String(seconds)],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    opened.defer(() => void visitors.kill('SIGKILL'));
    const crowd = (await json(visitors.stdout)) as Crowd;
    print('the crowd has gone');
    const besiegers = spawn(process.execPath, [SIEGE, url, String(seconds)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    opened.defer(() => void besiegers.kill('SIGKILL'));
    const over = new AbortController();
    const visits = Promise.all(
      ADDRESSES.map((from) => visit(`${url}/-/healthy`, from, over.signal)),
    );
    const scrapes = visit(`${url}/metrics`, ADDRESSES[1], over.signal);
    const siege = (await json(besiegers.stdout)) as Siege;
    over.abort();
    const probes = await visits;
    const scraped = await scrapes;
    print('the siege is over');
    const rss = await rssOf(child.pid);
    await setTimeout(500);
    const after = await scrape(url);
    child.kill('SIGTERM');
    const [code] = (await once(child, 'close')) as [number | null];

    const grown = (name: string) => (after.value(name) ?? NaN) - (quiet.value(name) ?? NaN);
    const polls = grown('evalwatch_scheduler_lag_seconds_count');
    const limits = short ? LIMITS.short : LIMITS.long;
    const latest = limits.lateSeconds;
    const le = { le: String(latest) };
    const onTime = (after.value(LAG, le) ?? NaN) - (quiet.value(LAG, le) ?? NaN);
    const counted = (name: string) =>
      [...after.samples].reduce((sum, [series, count]) => {
        if (!series.startsWith(`${name}{`)) return sum;
        return sum + count - (quiet.samples.get(series) ?? 0);
      }, 0);
    const missed = counted('evalwatch_scheduler_missed_runs_total');
    const overlapped = counted('evalwatch_scheduler_overlapped_runs_total');
    const figures = [
      ['projects, each polled every second', String(polled)],
      ['seconds', String(seconds)],
      ['scrapes, 200 at once every 2 s', countsOf(crowd.answers)],
      ['the slowest answer', `${Math.ceil(crowd.slowestAnswer)} ms after its connection`],
      ['the slowest connection', `${Math.ceil(crowd.slowestConnection)} ms`],
      [
        'slow clients',
        `${crowd.slowClients} connected, ${crowd.ended} of them ended by the daemon`,
      ],
      [
        'siege',
        `${siege.connections} connections, ${inMib(siege.streamBytes)} MiB of streams, ${inMib(siege.pageBytes)} MiB of answers`,
      ],
      ...probes.map((probe, n) => [`probes from ${ADDRESSES[n]}`, toldOf(probe)] as const),
      [`scrapes from ${ADDRESSES[1]}`, toldOf(scraped)],
      ['polls meanwhile', `${polls}, ${polls - onTime} later than ${latest} s`],
      ['ticks missed, overlapped', `${missed}, ${overlapped}`],
      ['memory at most', `${rss} MiB, ${quietRss} MiB before`],
    ] as const;
    const faults = [
      ...(polls === onTime ? [] : ['late polls']),
      ...(polls > 0 ? [] : ['no polls']),
      ...(missed <= limits.missed ? [] : ['missed ticks']),
      // Others are broken off when another address with fewer open answers takes their places.
      ...(['200', '503'].every((status) => status in crowd.answers)
        ? []
        : ['not answered by 200 and by 503, as it has to be']),
      // The address of the siege loses connections, also those of its own probes.
      ...([...probes.slice(1), scraped].every(
        ({ answers }) => Object.keys(answers).join() === '200',
      )
        ? []
        : ['probes or scrapes kept out']),
      ...(siege.streamBytes > 0 && siege.pageBytes > 0 ? [] : ['nothing answered in the siege']),
      ...(crowd.slowClients === SLOW_CLIENTS ? [] : ['refused connections']),
      ...(crowd.slowestAnswer <= limits.answerMs ? [] : ['an answer without an end']),
      ...(rss <= limits.rssMib ? [] : [`more than ${limits.rssMib} MiB`]),
      ...(code === 0 ? [] : [`ended with ${code}`]),
    ];
    if (faults.length > 0) {
      throw new Error(
        `${faults.join(', ')}: ${figures.map((figure) => figure.join(' ')).join('; ')}`,
      );
    }
    return figures;
  },
};

const LAG = 'evalwatch_scheduler_lag_seconds_bucket';

function toldOf({ answers, slowest }: Visits): string {
  return `${countsOf(answers)}, the slowest after ${Math.ceil(slowest)} ms`;
}

function countsOf(answers: Readonly<Record<string, number>>): string {
  return Object.entries(answers)
    .map(([answer, count]) => `${answer}: ${count}`)
    .join(', ');
}

function inMib(bytes: number): number {
  return Math.round(bytes / 1024 / 1024);
}

/** Returns the peak memory of a process, MiB. */
async function rssOf(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Math.round(Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024);
}
