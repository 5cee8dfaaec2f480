import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type { LogLine, Run } from '../oracle/observation.ts';

const ENTRY = fileURLToPath(new URL('../../../src/main.js', import.meta.url));

/** A running daemon. */
export interface Daemon {
  /** Its lines are filled in while it runs; `killed` says true from the kill on. */
  readonly run: Run;
  /** Of its HTTP interface; undefined until it said so. */
  url(): string | undefined;
  /** By SIGHUP. */
  reload(): void;
  /** Sends the signal and waits for the end. Resolves to the exit code, null after SIGKILL. */
  stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null>;
  /** Everything that it wrote that is no log line. */
  readonly garbled: readonly string[];
}

/** Starts the daemon. `onEnd` is told when it ends without having been asked to. */
export function startDaemon(config: string, onEnd: (code: number | null) => void): Daemon {
  const lines: LogLine[] = [];
  const garbled: string[] = [];
  const run = { startedAt: Date.now(), killed: false, lines };
  const child = start(['run', '--config', config]);
  let asked = false;
  readLines(child.stdout, (line) => lines.push(line), garbled);
  readLines(child.stderr, (line) => lines.push(line), garbled);
  const ended = (async () => {
    const [code] = (await once(child, 'close')) as [number | null];
    if (!asked) onEnd(code);
    return code;
  })();
  return {
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

/** What a command printed, and the log lines that it wrote to stderr. */
export interface Finished {
  readonly code: number | null;
  readonly rows: readonly unknown[];
  readonly run: Run;
  /** All of its output. */
  readonly output: string;
}

/** Runs a command with `--json` to its end. */
export async function runCommand(command: string, config: string): Promise<Finished> {
  const startedAt = Date.now();
  const child = start([command, '--json', '--config', config]);
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null]>,
  ]);
  const lines = stderr
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as LogLine);
  const output = stdout + stderr;
  if (!stdout.startsWith('[')) throw new Error(`${command} ended with ${code}: ${output}`);
  const rows = JSON.parse(stdout) as readonly unknown[];
  return { code, rows, run: { startedAt, killed: false, lines }, output };
}

function start(args: readonly string[]) {
  return spawn(process.execPath, [ENTRY, ...args], {
    env: { PATH: process.env['PATH'] },
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
