import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { IN_CI } from '../test/support/debian-tool.ts';
import { ALLOCATION, NODE_FLAGS } from '../test/support/node-flags.ts';
import type { Workload } from './workload.ts';

const ROOT = join(import.meta.dirname, '..');
export const SOURCE = 'src/main.js';
export const COMPILED = 'dist/main.js';
export const API_KEY = 'bench-key-0123456789';
/** Number of parallel connections of each contender. */
export const CONCURRENCY = 32;
/** Directories of control groups of both versions, and the file of their limit. */
const CONTROL_GROUPS = [
  ['/sys/fs/cgroup/memory', 'memory.limit_in_bytes'],
  ['/sys/fs/cgroup', 'memory.max'],
] as const;

/** A running program; `await using` kills it. */
export interface Program extends AsyncDisposable {
  readonly pid: number;
  /** Returns the next line of stdout that contains this text. @throws {Error} if it ends before */
  line(text?: string): Promise<string>;
}

export interface StartOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Shell command that runs first in the process. */
  readonly enter?: string;
}

/** Starts Node in this repository as the image and the systemd unit start it, with a program or an option. */
export function startNode(
  program: string,
  args: readonly string[] = [],
  { env = {}, enter = ':' }: StartOptions = {},
): Program {
  const command = [process.execPath, ...NODE_FLAGS, program, ...args];
  const child = spawn('/bin/sh', ['-c', `${enter} && exec "$@"`, 'sh', ...command], {
    cwd: ROOT,
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { PATH: process.env['PATH'], ...ALLOCATION, ...env },
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const ended = once(child, 'close');
  const { pid } = child;
  if (pid === undefined) throw new Error(`${program} could not be started`);
  return {
    pid,
    line: async (text = '') => {
      for (;;) {
        const { value, done } = await lines.next();
        if (done === true) throw new Error(`${program} ended without a line of ${text}`);
        if (value.includes(text)) return value;
      }
    },
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** Starts the service with this workload in a process of its own. */
export function startService(workload: Partial<Workload>): Program {
  return startNode('bench/service.ts', [JSON.stringify(workload)]);
}

/** The real daemon, and the address of its web port. */
export interface Daemon extends Program {
  readonly url: string;
}

/** Starts the real daemon. Resolves when it is ready. */
export async function startDaemon(
  program: string,
  config: string,
  options?: StartOptions,
): Promise<Daemon> {
  const daemon = startNode(program, ['run', '--config', config], options);
  const { url } = JSON.parse(await daemon.line('"daemon.started"')) as Pick<Daemon, 'url'>;
  return { ...daemon, url };
}

/**
 * Reads the lines of a daemon from now on, which would block otherwise.
 * @returns the number of lines so far that have this event or level
 */
export function countLines(daemon: Program): (eventOrLevel: string) => number {
  const counts = new Map<string, number>();
  const read = async () => {
    for (;;) {
      const { event, level } = JSON.parse(await daemon.line()) as Record<'event' | 'level', string>;
      for (const each of [event, level]) counts.set(each, (counts.get(each) ?? 0) + 1);
    }
  };
  // It rejects when the process has ended.
  void read().catch(() => {});
  return (eventOrLevel) => counts.get(eventOrLevel) ?? 0;
}

/** Compiles the daemon into `dist`. */
export async function build(): Promise<void> {
  await promisify(execFile)('npm', ['run', '--silent', 'build'], { cwd: ROOT });
}

/**
 * Writes a configuration whose limits slow no poll down, with log level `warn`, into a directory. Returns its path.
 * @param change sections that replace the default ones
 */
export async function writeConfiguration(
  directory: string,
  baseUrl: string,
  projects: readonly string[],
  change: object = {},
): Promise<string> {
  const file = join(directory, 'evalwatch.yaml');
  const content = {
    service: {
      base_url: baseUrl,
      api_key_file: 'key',
      max_concurrency: CONCURRENCY,
      max_requests_per_second: 0,
      max_response_size: '256MiB',
      timeout: '5m',
    },
    projects: projects.map((id) => ({ id })),
    store: { path: 'evalwatch.db' },
    web: { listen: '127.0.0.1:0' },
    log: { level: 'warn' },
    ...change,
  };
  await writeFile(join(directory, 'key'), `${API_KEY}\n`);
  // JSON is valid YAML.
  await writeFile(file, JSON.stringify(content));
  return file;
}

type MemoryField = 'VmHWM' | 'VmRSS' | 'RssAnon';

/**
 * Returns memory of a process in bytes: resident (`VmRSS`), its peak (`VmHWM`), or not of files (`RssAnon`). Linux only.
 * @throws {Error} if the process has ended, as when Linux kills it for its memory
 */
export async function memoryOf(pid: number | 'self', field: MemoryField): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch((cause: unknown) => {
    throw new Error(`the process ${pid} has ended`, { cause });
  });
  const [, kilobytes] = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status) ?? [];
  return Number(kilobytes) * 1024;
}

/** Sets the peak of a process's memory to what it has now. Linux only. */
export async function resetPeak(pid: number | 'self'): Promise<void> {
  await writeFile(`/proc/${pid}/clear_refs`, '5');
}

/** Returns the CPU time of the live threads of a process, ms. Linux only. */
export async function cpuMsOf(pid: number): Promise<number> {
  const tasks = await readdir(`/proc/${pid}/task`);
  const times = await Promise.all(
    tasks.map(async (task) =>
      Number((await readFile(`/proc/${pid}/task/${task}/schedstat`, 'utf8')).split(' ')[0]),
    ),
  );
  return times.reduce((sum, nanoseconds) => sum + nanoseconds, 0) / 1e6;
}

/** Control group that limits the memory of its processes like that of a container. */
export interface MemoryLimit extends AsyncDisposable {
  /** Shell command after which the shell, and what it starts, is in the group. */
  readonly enter: string;
}

/** Creates the group. @returns undefined where that is not allowed. @throws {Error} then, if `CI` is set */
export async function limitMemory(bytes: number): Promise<MemoryLimit | undefined> {
  for (const [root, limit] of CONTROL_GROUPS) {
    const group = join(root, `evalwatch-bench-${process.pid}`);
    try {
      await mkdir(group);
      await writeFile(join(group, limit), String(bytes));
      return {
        enter: `echo $$ > ${join(group, 'cgroup.procs')}`,
        [Symbol.asyncDispose]: () => rmdir(group),
      };
    } catch {
      await rmdir(group).catch(() => {});
    }
  }
  missing('no right to limit memory');
  return undefined;
}

/** Says that something is not measured. @throws {Error} if `CI` is set, because CI may skip nothing */
export function missing(what: string): void {
  if (IN_CI) throw new Error(what);
  console.warn(`not measured: ${what}`);
}
