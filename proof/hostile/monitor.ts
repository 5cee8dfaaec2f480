import { readdir, readFile, readlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startDaemon } from '../../test/support/evalwatch.ts';
import { NODE_FLAGS } from '../../test/support/node-flags.ts';
import { temporaryDirectory } from '../../test/support/temporary.ts';
import type { Probed } from './probe.ts';

const PROBE = fileURLToPath(new URL('probe.ts', import.meta.url));
/** API key with special characters of URLs and regular expressions. */
export const KEY = 'through-and-through/key+1';
const PATIENCE_MS = 120_000;
const MIB = 1024 * 1024;
/** Connections and timers come and go at rest, too: the lowest of so many numbers counts. */
const LOOKS = 8;
const LOOK_EVERY_MS = 500;

interface Project {
  readonly id: string;
  readonly schedule?: string;
  /** File with a key of its own. */
  readonly api_key_file?: string;
}

/** Outcome of a poll on request. */
export interface Polled {
  readonly ok: boolean;
  readonly reason: string | null;
  readonly transitions: number;
  readonly prompts: number | null;
}

export type Rows = readonly Readonly<Record<string, unknown>>[];

/** Starts a daemon that polls `projects` on request, and those with a schedule also by it. `await using` ends it. */
export async function startMonitor(
  source: string,
  baseUrl: string,
  projects: readonly Project[],
  service: object,
) {
  await using opened = new AsyncDisposableStack();
  const directory = opened.use(await temporaryDirectory()).path;
  const config = join(directory, 'evalwatch.yaml');
  const content = {
    service: {
      base_url: baseUrl,
      api_key_file: 'key',
      retries: 0,
      max_requests_per_second: 0,
      ...service,
    },
    schedule: '0 0 1 1 *',
    projects,
    store: { path: 'evalwatch.db' },
    web: { listen: '127.0.0.1:0', enable_lifecycle: true },
  };
  await writeFile(config, JSON.stringify(content));
  for (const { api_key_file: file = 'key' } of [...projects, {}]) {
    await writeFile(join(directory, file), file === 'key' ? KEY : `${KEY}/${file}`);
  }
  const probeFile = join(directory, 'probe');
  const garbled: string[] = [];
  const daemon = opened.use(
    startDaemon(
      { config },
      {
        source,
        nodeArgs: [...NODE_FLAGS, '--expose-gc', '--import', PROBE],
        env: { PROBE_FILE: probeFile },
        onGarbled: (line) => garbled.push(line),
      },
    ),
  );
  const url = await daemon.url();
  const pid = daemon.process.pid ?? 0;
  const rows = async (path: string): Promise<Rows> => {
    const answer = await fetch(`${url}/api/v1/${path}`);
    return ((await answer.json()) as { data: Rows }).data;
  };
  const probed = async () => JSON.parse(await readFile(probeFile, 'utf8')) as Probed;

  /** Lets the daemon look at itself. Returns what it holds now. */
  async function look() {
    const { signals } = await probed();
    process.kill(pid, 'SIGUSR2');
    for (;;) {
      const { signals: now, held } = await probed();
      if (now > signals && held !== undefined) return held;
      await setTimeout(50);
    }
  }

  const closing = opened.move();
  return {
    url,
    directory,
    lines: daemon.lines,
    garbled,
    stop: async () => (await daemon.stop()).code,
    /** Polls once. A poll that takes longer than a request may is judged by its project: nothing is known of its transitions. */
    poll: async (project: string): Promise<Polled> => {
      const deadline = performance.now() + PATIENCE_MS;
      const query = `project=${encodeURIComponent(project)}`;
      const from = Date.now();
      let isRunning = false;
      while (performance.now() < deadline) {
        if (isRunning) {
          const row = (await rows('projects')).find((each) => each['project'] === project);
          if (Date.parse(String(row?.['last_poll'])) > from) {
            const { up: ok, reason } = row as { up: boolean; reason: string | null };
            return { ok, reason, transitions: 0, prompts: null };
          }
        } else {
          const answer = await fetch(`${url}/-/poll?${query}`, { method: 'POST' });
          const text = await answer.text();
          if (answer.status === 200) return (JSON.parse(text) as { polled: [Polled] }).polled[0];
          isRunning = answer.status === 202;
          // 409 while its first poll is still running, 503 while eight others are polled.
          if (![202, 409, 503].includes(answer.status)) throw new Error(text);
        }
        await setTimeout(200);
      }
      throw new Error(`a poll of ${project} has no end`);
    },
    /** Returns rows of the API. */
    rows,
    /** Starts to measure memory and blocks anew. Returns the function that measures. */
    measure: async () => {
      await look();
      const before = await memoryOf(pid, 'VmRSS');
      await writeFile(`/proc/${pid}/clear_refs`, '5');
      return async () => ({
        /** Most memory above that at the beginning, MiB. */
        growthMib: (await memoryOf(pid, 'VmHWM')) - before,
        /** Longest block of the event loop, ms of CPU time. */
        blockMs: (await probed()).longestBlockMs,
      });
    },
    /** Returns the numbers of what the daemon holds while nothing but polls without changes happens, by name. */
    atRest: async (): Promise<ReadonlyMap<string, number>> => {
      const lowest = new Map<string, number>();
      for (let looks = 0; looks < LOOKS; looks += 1) {
        const { heapBytes, resources } = await look();
        const found = new Map([...Map.groupBy(resources, (type) => type)].map(countOf));
        found.set('MiB of heap', Math.round(heapBytes / MIB));
        found.set('open files', await openFiles(pid));
        for (const name of new Set([...lowest.keys(), ...found.keys()])) {
          const before = looks === 0 ? Infinity : (lowest.get(name) ?? 0);
          lowest.set(name, Math.min(before, found.get(name) ?? 0));
        }
        await setTimeout(LOOK_EVERY_MS);
      }
      return lowest;
    },
    [Symbol.asyncDispose]: () => closing[Symbol.asyncDispose](),
  };
}

function countOf([name, all]: readonly [string, readonly unknown[]]): [string, number] {
  return [name, all.length];
}

/** Counts open files and pipes. */
async function openFiles(pid: number): Promise<number> {
  const descriptors = await readdir(`/proc/${pid}/fd`);
  const targets = await Promise.all(
    descriptors.map((one) => readlink(`/proc/${pid}/fd/${one}`).catch(() => 'socket:closed')),
  );
  return targets.filter((target) => !target.startsWith('socket:')).length;
}

async function memoryOf(pid: number, figure: 'VmRSS' | 'VmHWM'): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(new RegExp(`^${figure}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) / 1024;
}
