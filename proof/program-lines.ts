import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { COMPILE_CACHE } from '../test/support/compile-cache.ts';

export interface ProgramOptions {
  /** Path of the program, and its arguments. */
  readonly args: readonly string[];
  /** Directory that it runs in. */
  readonly cwd: string;
  /** Time without a line after which it counts as hanging, ms. */
  readonly hangingMs: number;
  /** Returns its position, for the error message. */
  readonly place: () => string;
}

/**
 * Runs a Node program with no environment but PATH and the cache of compiled files, and yields its lines as they come. To
 * end the program, the caller stops reading.
 * @throws {Error} if the program hangs, writes to stderr or ends with another code than 0
 */
export async function* programLines(options: ProgramOptions): AsyncGenerator<string> {
  const { args, cwd, hangingMs, place } = options;
  const child = spawn(process.execPath, args, {
    cwd,
    env: { PATH: process.env['PATH'], ...COMPILE_CACHE },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const stderr = text(child.stderr);
  const ended = once(child, 'close') as Promise<[code: number | null, signal: string | null]>;
  let hangs = false;
  let isWhole = false;
  const watchdog = setTimeout(() => {
    hangs = true;
    child.kill('SIGKILL');
  }, hangingMs);
  try {
    for await (const line of createInterface(child.stdout)) {
      watchdog.refresh();
      yield line;
    }
    isWhole = true;
  } finally {
    clearTimeout(watchdog);
    if (!isWhole) child.kill('SIGKILL');
  }
  if (hangs) throw new Error(`no end after ${place()}`);
  const written = (await stderr).trim();
  if (written !== '') throw new Error(`on stderr: ${written}`);
  const [code, signal] = await ended;
  if (code !== 0) throw new Error(`ended with ${code ?? signal} at ${place()}`);
}
