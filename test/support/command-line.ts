import { spawn } from 'node:child_process';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { children } from './children.ts';
import { COMPILE_CACHE } from './compile-cache.ts';
import { ENTRY } from './entry.ts';
import { main } from '../../src/cli/main.ts';

export interface Finished {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface Where {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs evalwatch in a process of its own and waits for its end. */
export function evalwatch(args: readonly string[], where: Where = {}): Promise<Finished> {
  return execute(process.execPath, [ENTRY, ...args], where);
}

/** Runs a program with an empty stdin. Its environment has only PATH, the compile cache and `env`. */
export async function execute(
  program: string,
  args: readonly string[],
  { cwd, env }: Where = {},
): Promise<Finished> {
  const child = spawn(program, args, {
    cwd,
    env: { PATH: process.env['PATH'], ...COMPILE_CACHE, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.add(child);
  const [stdout, stderr, [code, signal]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    new Promise<[number | null, NodeJS.Signals | null]>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (...end) => resolve(end));
    }),
  ]);
  children.delete(child);
  return { code, signal, stdout, stderr };
}

/** Runs a command line in this process; with `columns`, stdout is a terminal of that width. */
export async function commandLine(args: readonly string[], columns?: number): Promise<Finished> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  if (columns !== undefined) Object.assign(stdout, { isTTY: true, columns });
  const texts = [text(stdout), text(stderr)] as const;
  const code = await main(args, { stdout, stderr }, { onSignal: undefined });
  stdout.end();
  stderr.end();
  return { code, signal: null, stdout: await texts[0], stderr: await texts[1] };
}
