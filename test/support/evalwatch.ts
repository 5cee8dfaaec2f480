import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { children } from './children.ts';
import { execute } from './command-line.ts';
import { COMPILE_CACHE } from './compile-cache.ts';
import { entryOf } from './entry.ts';
import { SOURCE } from '../../proof/row.ts';

// Runs evalwatch in processes of its own, with a configuration file and a store file.

export const KEY = 'correct-horse-battery-staple-42';
/** For waits on a busy machine. */
export const PATIENCE = { timeout: 100_000, interval: 30 };
export const UNHURRIED = { concurrent: true, timeout: 300_000 };

/** A receiver of messages that takes none, under the name that it has in full-scrape.ts. */
export const RECEIVER = { name: 'search-chat', type: 'webhook', url: 'http://127.0.0.1:9/' };

export interface Workspace extends AsyncDisposable {
  readonly directory: string;
  readonly config: string;
  /** Replaces parts of the configuration. `service` and `web` are merged, other sections are replaced whole. */
  configure(change: ConfigurationChange): Promise<void>;
}

export interface ConfigurationChange {
  readonly service?: object;
  readonly web?: object;
  readonly store?: object;
  readonly log?: object;
  readonly heartbeat?: object;
  readonly notify?: readonly object[];
  readonly metrics?: object;
  readonly schedule?: string;
  readonly idle_schedule?: string;
  readonly maintenance?: readonly object[];
  readonly missing_after?: number;
  readonly expect?: object;
  readonly projects?: readonly object[];
  readonly projects_files?: readonly string[];
}

/** Creates a directory with a key and a configuration that polls `baseUrl` every second; `await using` removes it. */
export async function workspace(
  baseUrl: string,
  change: ConfigurationChange = {},
): Promise<Workspace> {
  const directory = await mkdtemp(join(tmpdir(), 'evalwatch-'));
  const config = join(directory, 'evalwatch.yaml');
  let content: ConfigurationChange = {
    service: {
      base_url: baseUrl,
      api_key_file: 'key',
      max_requests_per_second: 0,
      // A slow machine is no failure, and the clocks of daemon-here.ts are fast.
      timeout: '10m',
    },
    schedule: '* * * * * *',
    projects: [{ id: 'alpha' }],
    store: { path: 'evalwatch.db' },
    web: { listen: '127.0.0.1:0' },
  };
  async function configure(next: ConfigurationChange): Promise<void> {
    content = {
      ...content,
      ...next,
      service: { ...content.service, ...next.service },
      web: { ...content.web, ...next.web },
    };
    // JSON is valid YAML.
    await writeFile(config, JSON.stringify(content));
  }
  await writeFile(join(directory, 'key'), `${KEY}\n`);
  await configure(change);
  return {
    directory,
    config,
    configure,
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  };
}

/** Has a daemon poll only at its start and on request ({@link pollNow}). */
export const ON_REQUEST = { schedule: '0 0 1 1 *', web: { enable_lifecycle: true } };

/** Has a daemon with {@link ON_REQUEST} poll every project, again if that takes longer than its answer. Returns the results. */
export async function pollNow(url: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  for (;;) {
    const answer = await fetch(`${url}/-/poll`, { method: 'POST' });
    if (answer.status === 403) throw new Error('web.enable_lifecycle is not set');
    const { polled = [] } = (await answer.json()) as {
      polled?: readonly Record<string, unknown>[];
    };
    if (polled.length > 0) return polled;
    await setTimeout(100);
  }
}

interface LogLine {
  readonly level: string;
  readonly time: string;
  readonly event: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stderr: string;
}

/** Log of a daemon. */
export interface Lines {
  /** The lines so far. */
  readonly lines: readonly LogLine[];
  /** Everything on stdout so far. */
  readonly stdout: () => string;
  /** Waits for the first line of this event with these fields, after skipping `after` lines. */
  line(event: string, fields?: Readonly<Record<string, unknown>>, after?: number): Promise<LogLine>;
  /** The lines of this event so far. */
  of(event: string): readonly LogLine[];
  /** Waits for the start and returns the address of the HTTP interface. */
  url(): Promise<string>;
}

/** A running `evalwatch run`; `await using` kills it. */
export interface Daemon extends Lines, AsyncDisposable {
  readonly process: ChildProcess;
  readonly ended: Promise<Ended>;
  stop(signal?: NodeJS.Signals): Promise<Ended>;
}

export interface LaunchOptions {
  readonly program?: string;
  readonly args?: readonly string[];
  /** Directory of its sources; ignored with `args`. By default those of the checkout. */
  readonly source?: string | undefined;
  /** Arguments of Node before the program; ignored with `args`. */
  readonly nodeArgs?: readonly string[];
  /** Called with each line on stdout that is not a log line. By default such a line throws. */
  readonly onGarbled?: (line: string) => void;
  /** Further options of the command. */
  readonly options?: readonly string[];
  /** File descriptor; by default a pipe to this process. */
  readonly stdout?: number;
  /** Further environment variables. */
  readonly env?: Readonly<Record<string, string>>;
}

export function startDaemon(
  { config }: Pick<Workspace, 'config'>,
  options: LaunchOptions = {},
): Daemon {
  const { program = process.execPath, stdout = 'pipe', env = {} } = options;
  const { source = SOURCE, nodeArgs = [], options: further = [] } = options;
  const { args = [...nodeArgs, entryOf(source)] } = options;
  const stdio: StdioOptions = ['ignore', stdout, 'pipe'];
  const child = spawn(program, [...args, 'run', '--config', config, ...further], {
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...COMPILE_CACHE, ...env },
    stdio,
  });
  return watch(child, options.onGarbled);
}

function watch(child: ChildProcess, onGarbled: LaunchOptions['onGarbled']): Daemon {
  const stateOf = () => String(child.exitCode ?? child.signalCode ?? 'running');
  const log = keepLines(stateOf, onGarbled);
  if (child.stdout !== null) createInterface(child.stdout).on('line', log.add);
  const ended = endOf(child);

  return {
    process: child,
    ...log.kept,
    ended,
    stop: async (signal = 'SIGTERM') => {
      child.kill(signal);
      return await ended;
    },
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** Collects the lines of a daemon. `stateOf` describes the daemon in the error about a missing line. */
export function keepLines(
  stateOf: () => string,
  onGarbled?: (line: string) => void,
): {
  readonly add: (line: string) => void;
  readonly kept: Lines;
} {
  const texts: string[] = [];
  const lines: LogLine[] = [];
  const added = new EventEmitter().setMaxListeners(0);
  const line: Lines['line'] = async (event, fields = {}, after = 0) => {
    const isWanted = (each: LogLine) =>
      each.event === event && Object.entries(fields).every(([name, value]) => each[name] === value);
    const patience = AbortSignal.timeout(PATIENCE.timeout);
    for (let next = after; ; next += 1) {
      while (next >= lines.length) {
        await once(added, 'line', { signal: patience }).catch(() => {
          throw new Error(
            `no line ${event} ${JSON.stringify(fields)} (${stateOf()}); it said:\n${texts.join('\n')}`,
          );
        });
      }
      const each = lines[next];
      if (each !== undefined && isWanted(each)) return each;
    }
  };
  return {
    add: (written) => {
      texts.push(written);
      try {
        lines.push(JSON.parse(written) as LogLine);
      } catch (error) {
        if (onGarbled === undefined) throw error;
        onGarbled(written);
      }
      added.emit('line');
    },
    kept: {
      lines,
      stdout: () => texts.join('\n'),
      line,
      of: (event) => lines.filter((each) => each.event === event),
      url: async () => (await line('daemon.started'))['url'] as string,
    },
  };
}

/** Resolves to whether the condition became true in time on a busy machine. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  everyMs = 20,
): Promise<boolean> {
  const deadline = Date.now() + PATIENCE.timeout;
  while (!(await condition())) {
    if (Date.now() > deadline) return false;
    await setTimeout(everyMs);
  }
  return true;
}

async function endOf(child: ChildProcess): Promise<Ended> {
  children.add(child);
  const [stderr, [code, signal]] = await Promise.all([
    text(child.stderr as Readable),
    once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>,
  ]);
  children.delete(child);
  return { code, signal, stderr };
}

export interface Finished extends Ended {
  readonly stdout: string;
  /** Parses stdout of a command with JSON output. */
  readonly json: () => readonly Readonly<Record<string, unknown>>[];
  /** Parses the log lines on stderr. */
  readonly lines: () => readonly LogLine[];
}

/** Runs a command of a workspace to its end. */
export async function runCommand(
  { config }: Pick<Workspace, 'config'>,
  args: readonly string[],
  source = SOURCE,
): Promise<Finished> {
  const command = [entryOf(source), ...args, '--config', config];
  const finished = await execute(process.execPath, command);
  return {
    ...finished,
    json: () => JSON.parse(finished.stdout) as readonly Record<string, unknown>[],
    lines: () =>
      finished.stderr
        .split('\n')
        .filter((each) => each.startsWith('{'))
        .map((each) => JSON.parse(each) as LogLine),
  };
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Returns the result and the time until it resolved, ms. */
export async function timed<T>(promise: Promise<T>): Promise<readonly [T, number]> {
  const started = performance.now();
  return [await promise, performance.now() - started];
}
