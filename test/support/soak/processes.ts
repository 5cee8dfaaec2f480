import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { COMPILE_CACHE } from '../compile-cache.ts';
import { entryOf } from '../entry.ts';
import { NODE_FLAGS } from '../node-flags.ts';
import type { LogLine, Run } from '../oracle/observation.ts';
import { SOURCE } from '../../../proof/row.ts';

export interface Daemon {
  readonly pid: number;
  /** Lines are added while it runs; `killed` is true from the kill on. */
  readonly run: Run;
  /** Address of its HTTP interface, once it is logged. */
  readonly url: () => string | undefined;
  /** Sends SIGHUP. */
  readonly reload: () => void;
  /** Sends the signal and waits for the end. Resolves to the exit code, null after SIGKILL. */
  readonly stop: (signal: 'SIGTERM' | 'SIGKILL') => Promise<number | null>;
  /** Output that is not a log line. */
  readonly garbled: readonly string[];
}

export interface DaemonOptions {
  /** Directory of its sources; by default {@link SOURCE}. */
  readonly source?: string | undefined;
  /** Addresses of modules that it loads before its own. */
  readonly preload?: readonly string[];
}

/** Starts the daemon. `onEnd` is called when it ends without a call of `stop`. */
export function startDaemon(
  config: string,
  onEnd: (code: number | null) => void,
  { source = SOURCE, preload = [] }: DaemonOptions = {},
): Daemon {
  const lines: LogLine[] = [];
  const garbled: string[] = [];
  const run = { startedAt: Date.now(), killed: false, lines };
  const child = start(source, ['run', '--config', config], preload);
  let asked = false;
  readLines(child.stdout, (line) => lines.push(line), garbled);
  readLines(child.stderr, (line) => lines.push(line), garbled);
  const ended = (async () => {
    const [code] = (await once(child, 'close')) as [number | null];
    if (!asked) onEnd(code);
    return code;
  })();
  return {
    pid: child.pid ?? 0,
    run,
    garbled,
    url: () =>
      (lines.find(({ event }) => event === 'daemon.started') as { url?: string } | undefined)?.url,
    reload: () => child.kill('SIGHUP'),
    stop: async (signal) => {
      asked = true;
      run.killed = signal === 'SIGKILL';
      child.kill(signal);
      return await ended;
    },
  };
}

function start(source: string, args: readonly string[], preload: readonly string[] = []) {
  const imports = preload.flatMap((module) => ['--import', module]);
  return spawn(process.execPath, [...NODE_FLAGS, ...imports, entryOf(source), ...args], {
    env: { PATH: process.env['PATH'], ...COMPILE_CACHE },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

function readLines(stream: Readable, onLine: (line: LogLine) => void, garbled: string[]): void {
  createInterface(stream).on('line', (line) => {
    try {
      onLine(JSON.parse(line) as LogLine);
    } catch {
      garbled.push(line);
    }
  });
}
