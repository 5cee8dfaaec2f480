import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { json } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ROOT, startNode } from '../bench/node-process.ts';
import { build, COMPILED } from '../bench/rows/daemon.ts';
import { projectIds } from '../bench/workload.ts';
import { ALLOCATION, NODE_FLAGS } from '../test/support/node-flags.ts';
import { writeConfiguration } from '../test/support/soak/configuration.ts';
import { temporaryDirectory } from '../test/support/temporary.ts';
import { limitMemory } from './large-listings/memory-limit.ts';
import type { Answers } from './large-listings/probe.ts';
import type { Row, RowOptions } from './row.ts';

const SERVICE = 'proof/large-listings/service.ts';
const PROBE = fileURLToPath(new URL('large-listings/probe.ts', import.meta.url));
const LONG = { projects: 10, prompts: 100_000, seconds: 300, every: 30 };
const SHORT = { projects: 10, prompts: 5000, seconds: 8, every: 2 };
/** Memory that docs/operations.md promises for ten projects of 100,000 prompts. */
const CONTAINER_BYTES = 256 * 2 ** 20;
/** Variables that the image sets. */
const IMAGE_ENVIRONMENT = {
  ...ALLOCATION,
  NODE_OPTIONS: '--max-old-space-size-percentage=50',
};
const PROBE_EVERY_MS = 100;

/** Polls large listings in the same second again and again, with little memory, before and after a restart. */
export const largeListings: Row = {
  name: 'large-listings',
  run: async ({ short, print }) => {
    const size = short ? SHORT : LONG;
    await using opened = new AsyncDisposableStack();
    const directory = opened.use(await temporaryDirectory());
    // A container runs the compiled daemon.
    await build();
    const service = opened.use(startNode(SERVICE, String(size.projects), String(size.prompts)));
    const baseUrl = await service.line('http');
    const config = await writeConfiguration(
      directory.path,
      baseUrl,
      projectIds(size.projects).map((id) => ({ id, datasets: false })),
      {
        schedule: `*/${size.every} * * * * *`,
        timeout: '30s',
        service: { max_response_size: '256MiB' },
      },
    );
    const limit = await limitMemory(CONTAINER_BYTES);
    if (limit === undefined) print('no right to limit memory: it is only measured');
    else opened.use(limit);
    const enter = limit?.enter ?? ':';
    return [
      ['projects, prompts in each', `${size.projects}, ${size.prompts}`],
      ['limit of memory', limit === undefined ? 'none' : `${inMib(CONTAINER_BYTES)} MiB`],
      ...(await watch('first', { config, enter, ...size, print })),
      ...(await watch('restarted', { config, enter, ...size, print })),
    ];
  },
};

interface Watched extends Pick<RowOptions, 'print'> {
  readonly config: string;
  readonly enter: string;
  readonly projects: number;
  readonly seconds: number;
  readonly every: number;
}

/** Runs the daemon and requests its pages meanwhile. @throws {Error} if it is killed, or a poll or an answer fails */
async function watch(name: string, { config, enter, projects, seconds, every, print }: Watched) {
  const daemon = startDaemon(config, enter, print);
  await using opened = new AsyncDisposableStack();
  opened.defer(daemon.end);
  const url = await Promise.race([daemon.url, daemon.killed]);
  const probe = startProbe(url);
  opened.defer(probe.end);
  for (let second = 0; second < seconds; second += every) {
    await Promise.race([setTimeout(every * 1000), daemon.killed]);
    print(`${name}: ${daemon.polls()} polls, ${await memoryOf(daemon.pid)}`);
  }
  const answers = await probe.answers();
  const memory = await memoryOf(daemon.pid);
  const code = await daemon.stop();
  const polls = daemon.polls();
  const figures = [
    [`${name}: polls, failed`, `${polls}, ${daemon.failed()}`],
    [`${name}: memory`, memory],
    ...answers.map(({ path, count, failed, median, p99, worst }) => {
      const times = `median ${median}, p99 ${p99}, worst ${worst} ms`;
      return [`${name}: GET ${path}`, `${count}, ${failed} failed, ${times}`] as const;
    }),
  ] as const;
  const faults = [
    ...(daemon.failed() === 0 ? [] : ['failed polls']),
    ...(polls >= (projects * Math.floor(seconds / every)) / 2 ? [] : ['polls that were not made']),
    ...(answers.every(({ failed }) => failed === 0) ? [] : ['failed answers']),
    ...(code === 0 ? [] : [`ended with ${code}`]),
  ];
  if (faults.length === 0) return figures;
  throw new Error(`${faults.join(', ')}: ${figures.map((each) => each.join(' ')).join('; ')}`);
}

function startDaemon(config: string, enter: string, print: RowOptions['print']) {
  const program = [
    process.execPath,
    ...NODE_FLAGS,
    join(ROOT, COMPILED),
    'run',
    '--config',
    config,
  ];
  const child = spawn('/bin/sh', ['-c', `${enter} && exec "$@"`, 'sh', ...program], {
    env: { PATH: process.env['PATH'], ...IMAGE_ENVIRONMENT },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'close') as Promise<[number | null, string | null]>;
  const url = Promise.withResolvers<string>();
  const killed = Promise.withResolvers<never>();
  killed.promise.catch(() => {});
  let isStopping = false;
  let polls = 0;
  let failed = 0;
  createInterface(child.stdout).on('line', (text) => {
    const line = JSON.parse(text) as { event: string; url: string };
    if (line.event === 'daemon.started') url.resolve(line.url);
    if (line.event === 'poll.completed') polls += 1;
    if (line.event === 'poll.failed') {
      failed += 1;
      print(text);
    }
  });
  child.on('close', (code, signal) => {
    if (isStopping) return;
    killed.reject(new Error(`the daemon ended with ${signal ?? code} after ${polls} polls`));
  });
  const end = async () => {
    isStopping = true;
    child.kill('SIGKILL');
    await ended;
  };
  return {
    pid: child.pid,
    url: url.promise,
    /** Rejects when the daemon ends by itself. */
    killed: killed.promise,
    polls: () => polls,
    failed: () => failed,
    stop: async () => {
      isStopping = true;
      child.kill('SIGTERM');
      const [code] = await ended;
      return code;
    },
    end,
  };
}

function startProbe(url: string) {
  const child = spawn(process.execPath, [PROBE, url, String(PROBE_EVERY_MS)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(child, 'close');
  const end = async () => {
    child.kill('SIGKILL');
    await ended;
  };
  /** Ends the probe and returns what it has measured. */
  const answers = async () => {
    child.stdin.end();
    return (await json(child.stdout)) as readonly Answers[];
  };
  return { answers, end };
}

async function memoryOf(pid: number | undefined): Promise<string> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const [most, now, anonymous] = ['VmHWM', 'VmRSS', 'RssAnon'].map((field) =>
    inMib(1024 * Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)?.[1])),
  );
  return `${now} MiB, ${anonymous} of them not of files; at most ${most} MiB`;
}

function inMib(bytes: number): number {
  return Math.round(bytes / 2 ** 20);
}
