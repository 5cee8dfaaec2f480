import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { COMPILE_CACHE } from '../../test/support/compile-cache.ts';
import type { LogLine, Run } from '../../test/support/oracle/observation.ts';
import { EVERY_THREAD } from '../strace.ts';
import type { Call, Step } from './steps.ts';

const WATCHER = fileURLToPath(new URL('watcher.ts', import.meta.url));
const DIE_AT_STEP = new URL('die-at-step.ts', import.meta.url).href;

/** When a process ends: at the n-th pass of a step or the n-th call of one of its threads, or by itself after its rounds. */
export type End =
  | { readonly step: Step; readonly pass: number }
  | { readonly call: Call; readonly pass: number }
  | { readonly rounds: number };

export interface Place {
  /** A copy of src/, with a slash at its end. */
  readonly source: string;
  /** A configuration in YAML. */
  readonly config: string;
  /** The same as JSON, for the watcher. */
  readonly watcherConfig: string;
  readonly strace: string | undefined;
}

export interface Life {
  readonly run: Run;
  /** Whether it ended when it had to, by SIGKILL or by itself. */
  readonly asTold: boolean;
  /** Output that is not a log line, except a last line that the kill has cut. */
  readonly garbled: readonly string[];
  readonly stderr: string;
}

/** Limit for the whole daemon; the watcher needs a tenth of it. */
const PATIENCE_MS = 120_000;
/** Rounds, more than any kill waits for. */
const ENDLESS = 2000;

/** Runs the watcher, or the whole daemon, until it is dead. */
export async function live(
  { source, config, watcherConfig, strace = 'strace' }: Place,
  program: 'watcher' | 'daemon',
  end: End,
): Promise<Life> {
  const rounds = 'rounds' in end ? end.rounds : ENDLESS;
  const script =
    program === 'daemon'
      ? [join(source, 'main.js'), 'run', '--config', config]
      : [WATCHER, source, watcherConfig, String(rounds)];
  const preload = 'step' in end ? ['--import', DIE_AT_STEP] : [];
  const command = [process.execPath, ...preload, ...script];
  const [file = '', ...args] =
    'call' in end ? [strace, ...killingAt(end.call, end.pass), ...command] : command;
  const startedAt = Date.now();
  const child = spawn(file, args, {
    env: {
      PATH: process.env['PATH'],
      ...COMPILE_CACHE,
      ...('step' in end && { DIE_AT_STEP: end.step, DIE_AT_PASS: String(end.pass) }),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own: what strace runs must not outlive it.
    detached: true,
  });
  const { pid } = child;
  const timer = setTimeout(() => pid && process.kill(-pid, 'SIGKILL'), PATIENCE_MS);
  const [stdout, stderr, [code, signal]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>,
  ]);
  clearTimeout(timer);
  const killed = signal === 'SIGKILL';
  const tooLate = Date.now() - startedAt >= PATIENCE_MS;
  const { lines, garbled } = readLines(stdout);
  return {
    run: { startedAt, killed, lines },
    asTold: !tooLate && ('rounds' in end ? code === 0 : killed),
    garbled: killed ? garbled.filter((line) => !stdout.endsWith(line)) : garbled,
    stderr,
  };
}

function killingAt(call: Call, pass: number): readonly string[] {
  const inject = `inject=${call}:signal=KILL:when=${pass}`;
  return [...EVERY_THREAD, '-qq', '-o', '/dev/null', '-e', `trace=${call}`, '-e', inject];
}

function readLines(stdout: string) {
  const lines: LogLine[] = [];
  const garbled: string[] = [];
  for (const line of stdout.split('\n').filter((each) => each !== '')) {
    try {
      lines.push(JSON.parse(line) as LogLine);
    } catch {
      garbled.push(line);
    }
  }
  return { lines, garbled };
}
