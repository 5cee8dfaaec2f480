/** Rows that measure the whole daemon from outside. */
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { temporaryDirectory } from '../test/support/temporary.ts';
import { type Crowd, statusOf } from './crowd.ts';
import {
  build,
  COMPILED,
  countLines,
  cpuMsOf,
  limitMemory,
  memoryOf,
  resetPeak,
  SOURCE,
  startDaemon,
  startNode,
  startService,
  writeConfiguration,
} from './processes.ts';
import {
  AT_LEAST_ONE,
  type Bounds,
  type Figures,
  line,
  type Line,
  NEVER,
  quantile,
  type Row,
} from './report.ts';
import { projectIds, type Workload } from './workload.ts';

const PROJECTS = 10;
const PROMPTS = 100_000;
const STARTS_PER_RUN = 3;
/** Schedule after the first poll, which comes at once. */
const NO_SCHEDULE = '0 0 29 2 *';
/** Memory that docs/operations.md promises for ten projects of 100,000 prompts, and the settings of the image. */
const CONTAINER_BYTES = 256 * 2 ** 20;
const IMAGE = { env: { NODE_OPTIONS: '--max-old-space-size-percentage=50' } };
/** Imports the libraries that the daemon starts with, and waits to be looked at and killed. */
const IMPORTS = `const { dependencies } = JSON.parse(fs.readFileSync('package.json', 'utf8'));
  const { bcrypt, pg, ...used } = dependencies;
  await Promise.all(Object.keys(used).map((library) => import(library)));
  console.log('ready');
  setInterval(() => {}, 60_000);`;
/** Address on the loopback that no client of the crowd has. */
const PEACEFUL = '127.0.0.2';

const memory: Row = {
  name: 'memory',
  title:
    'the compiled daemon with 10 projects of few prompts, polled every 10 s (idle), with one poll of 100,000 prompts, and with ten such projects at once (million)',
  goals: [
    { metric: 'restBytes', of: 'idle', most: 100e6 },
    { metric: 'peakBytes', of: 'first', above: 'idle', most: 150e6 },
    { metric: 'peakBytes', of: 'changed', above: 'idle', most: 40e6 },
    { metric: 'peakBytes', of: 'unchanged', above: 'idle', most: 25e6 },
    { metric: 'peakBytes', of: 'million', above: 'idle', most: 150e6 },
    { metric: 'restBytes', of: 'million', above: 'idle', most: 100e6 },
  ],
  measure: async function* ({ isQuick }) {
    const restMs = isQuick ? 15_000 : 60_000;
    await build();
    const runs: Record<string, Figures[]> = {};
    const rest = async (name: string, { pid }: { readonly pid: number }) => {
      await setTimeout(restMs);
      const [restBytes, peakBytes] = [await memoryOf(pid, 'VmRSS'), await memoryOf(pid, 'VmHWM')];
      runs[name] = [{ restBytes, peakBytes }];
    };
    {
      await using idle = await startPolled({ projects: PROJECTS }, '*/10 * * * * *');
      await rest('idle', idle);
    }
    {
      // The second version differs by 1 %, and the last one is served again and again.
      await using large = await startPolled({ prompts: PROMPTS, versions: 2 }, NO_SCHEDULE);
      await rest('first', large);
      for (const name of ['changed', 'unchanged']) {
        await resetPeak(large.pid);
        await pollNow(large.url, 'project-0');
        await rest(name, large);
      }
    }
    {
      const million = { projects: PROJECTS, prompts: PROMPTS, isShared: true };
      await using polled = await startPolled(million, NO_SCHEDULE);
      await rest('million', polled);
    }
    yield { size: `${restMs / 1000} s of rest`, runs };
  },
};

const contained: Row = {
  name: 'contained',
  title:
    'the compiled daemon in 256 MiB with 10 projects of 100,000 prompts, all polled every 20 s with 1 % changed, and again after a restart; pages are requested meanwhile',
  measure: async function* ({ seconds }) {
    await build();
    await using opened = new AsyncDisposableStack();
    const limit = await limitMemory(CONTAINER_BYTES);
    if (limit !== undefined) opened.use(limit);
    const directory = opened.use(await temporaryDirectory());
    const large = { projects: PROJECTS, prompts: PROMPTS, versions: 3, isShared: true };
    const service = opened.use(startService(large));
    const config = await writeWatching(
      directory.path,
      await service.line(),
      large,
      '*/20 * * * * *',
    );
    for (const size of ['first start', 'restart']) {
      const options = { ...IMAGE, ...(limit && { enter: limit.enter }) };
      await using daemon = await startDaemon(COMPILED, config, options);
      const lines = countLines(daemon);
      const over = AbortSignal.timeout(seconds * 1000);
      const paths = ['/-/ready', '/', '/api/v1/projects', '/metrics'];
      const asked = await Promise.all(paths.map((path) => ask(daemon.url + path, over)));
      const polls = lines('poll.completed');
      yield {
        size,
        lines: [
          line('polls', polls, '', { least: PROJECTS, isPromise: true }),
          line('polls failed', lines('poll.failed'), '', NEVER),
          ...paths.flatMap((path, n) => told(path, asked[n] ?? [], NEVER)),
          await memoryLine(daemon.pid, 'VmHWM', 'peak memory'),
          await memoryLine(daemon.pid, 'RssAnon', 'memory that is not of files'),
        ],
      };
    }
  },
};

const pressure: Row = {
  name: 'pressure',
  title:
    'the compiled daemon polls 40 projects each second beside 3,000 hostile connections and 200 scrapes at once every 2 s',
  measure: async function* ({ seconds }) {
    await build();
    const small = { projects: 40, prompts: 20, versions: 20, isShared: true };
    await using polled = await startPolled(small, '* * * * * *');
    const { url, pid } = polled;
    const lag = async (series: string) => {
      const text = await (await fetch(`${url}/metrics`)).text();
      return sumOf(text, `evalwatch_scheduler_lag_seconds_${series}`);
    };
    const before = [await lag('count'), await lag('bucket{le="1"}')] as const;
    await using crowd = startNode('bench/crowd.ts', [url, String(seconds)]);
    const over = AbortSignal.timeout(seconds * 1000);
    const [probes, scraped] = await Promise.all(
      ['/-/healthy', '/metrics'].map((path) => ask(url + path, over, 250, PEACEFUL)),
    );
    const { connections, scrapes } = JSON.parse(await crowd.line()) as Crowd;
    const inTime = (await lag('bucket{le="1"}')) - before[1];
    const polls = (await lag('count')) - before[0];
    yield {
      size: `${seconds} s`,
      lines: [
        line('connections of the crowd', connections, '', { least: 3000, isPromise: true }),
        line('scrapes at once answered 200', scrapes[200] ?? 0, '', AT_LEAST_ONE),
        line('scrapes at once answered 503', scrapes[503] ?? 0, '', AT_LEAST_ONE),
        line('scrapes at once not answered', scrapes[0] ?? 0),
        ...told('a probe from another address', probes ?? [], NEVER),
        // As others are, it is refused while the maximum number of scrapes is answered.
        ...told('a scrape from another address', scraped ?? []),
        line('polls', polls, '', AT_LEAST_ONE),
        line('polls more than 1 s late', polls - inTime, '', { most: 0 }),
        // Half of the memory that config/kubernetes grants.
        { ...(await memoryLine(pid, 'VmHWM', 'peak memory')), most: 512 },
      ],
    };
  },
};

/** Time from the start of the process to the line `daemon.started`, with an existing store. */
const starts: Row = {
  name: 'start',
  title: 'start to ready with 10 projects, and Node that only imports the same libraries',
  goals: [
    { metric: 'wallMs', of: 'compiled', over: 'imports', most: 1.6 },
    { metric: 'wallMs', of: 'source', over: 'imports', most: 2.2 },
  ],
  measure: async function* ({ runs: count }) {
    await build();
    await using directory = await temporaryDirectory();
    // Nothing listens there: the daemon is ready before its first poll.
    const config = await writeWatching(
      directory.path,
      'http://127.0.0.1:9',
      { projects: PROJECTS },
      NO_SCHEDULE,
    );
    const cache = join(directory.path, 'compiled');
    const ways = {
      imports: async () => {
        const node = startNode('--input-type=module', ['--eval', IMPORTS]);
        await node.line('ready');
        return node;
      },
      compiled: () => startDaemon(COMPILED, config),
      // As `npm start` does: what Node compiled is kept for the next start.
      source: () => startDaemon(SOURCE, config, { env: { NODE_COMPILE_CACHE: cache } }),
    };
    const runs: Record<string, Figures[]> = {};
    for (let number = 0; number <= count * STARTS_PER_RUN; number += 1) {
      for (const [name, started] of Object.entries(ways)) {
        const before = performance.now();
        await using program = await started();
        const wallMs = performance.now() - before;
        // The first start creates the store and fills the caches, that of Node when it ends by itself.
        if (number === 0) {
          runs[name] = [];
          process.kill(program.pid, 'SIGTERM');
          await program.line('until it ends').catch(() => {});
        } else runs[name]?.push({ wallMs, cpuMs: await cpuMsOf(program.pid) });
      }
    }
    yield { size: `${count * STARTS_PER_RUN} starts`, runs };
  },
};

export const DAEMONS: readonly Row[] = [memory, contained, starts, pressure];

async function writeWatching(
  directory: string,
  url: string,
  { projects = 1 }: Partial<Workload>,
  schedule: string,
): Promise<string> {
  return await writeConfiguration(directory, url, projectIds(projects), {
    schedule,
    log: { level: 'info' },
    web: { listen: '127.0.0.1:0', enable_lifecycle: true },
  });
}

/** Starts a service and a daemon, and waits until all its projects are polled. */
async function startPolled(workload: Partial<Workload>, schedule: string) {
  const opened = new AsyncDisposableStack();
  const service = opened.use(startService(workload));
  const directory = opened.use(await temporaryDirectory());
  const config = await writeWatching(directory.path, await service.line(), workload, schedule);
  const daemon = opened.use(await startDaemon(COMPILED, config));
  const projects = projectIds(workload.projects ?? 1);
  for (const _ of projects) await daemon.line('"poll.completed"');
  countLines(daemon);
  return {
    pid: daemon.pid,
    url: daemon.url,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** Polls a project once. */
async function pollNow(url: string, project: string): Promise<void> {
  const polled = await fetch(`${url}/-/poll?project=${project}`, { method: 'POST' });
  // The response comes after the poll.
  const text = await polled.text();
  if (!polled.ok) throw new Error(`${project} was not polled: ${polled.status} ${text}`);
}

/** Requests an address again and again over new connections. Returns the time of each answer, NaN if it was not 200. */
async function ask(url: string, over: AbortSignal, everyMs = 100, from = '127.0.0.1') {
  const times: number[] = [];
  while (!over.aborted) {
    const started = performance.now();
    const status = await statusOf(url, from);
    times.push(status === 200 ? performance.now() - started : Number.NaN);
    await setTimeout(everyMs);
  }
  return times;
}

/** Tells how fast requests were answered, and how many were not answered by 200, with the bounds of these. */
function told(what: string, times: readonly number[], bounds?: Bounds): readonly Line[] {
  const answered = times.filter((ms) => !Number.isNaN(ms));
  return [
    line(`${what}: 99 % within`, quantile(answered, 0.99), 'ms'),
    line(`${what}: slowest of ${times.length}`, Math.max(...answered), 'ms'),
    line(`${what}: not answered`, times.length - answered.length, '', bounds),
  ];
}

async function memoryLine(pid: number, field: 'VmHWM' | 'RssAnon', what: string): Promise<Line> {
  return { what, value: (await memoryOf(pid, field)) / 2 ** 20, unit: 'MiB' };
}

/** Adds up the samples of a metric, or of one series of it. */
export function sumOf(exposition: string, series: string): number {
  const escaped = series.replaceAll(/[{}.]/g, String.raw`\$&`);
  const samples = exposition.matchAll(new RegExp(`^${escaped}(?:\\{[^}]*\\})? (\\S+)$`, 'gm'));
  return samples.reduce((sum, [, value]) => sum + Number(value), 0);
}
