import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { vi } from 'vitest';

/** Timeout of waits for programs on a busy machine. */
export const PATIENCE = { timeout: 100_000, interval: 100 };

/** Environment of the Go programs: less garbage collection, and no threads that spin on cores of other tests. */
const SPARING = { GOGC: '800', GOMAXPROCS: '1' };

/**
 * Starts a server and waits until this address answers 2xx. Disposing of it kills it and waits for its end.
 * @throws {Error} with its output, if it ends or does not answer; it is killed first
 */
export async function startServer(
  program: string,
  args: readonly string[],
  url: string,
): Promise<AsyncDisposable> {
  await using opened = new AsyncDisposableStack();
  const child = spawn(program, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...SPARING },
  });
  const closed = once(child, 'close');
  opened.defer(async () => {
    child.kill('SIGKILL');
    await closed;
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  }
  const answers = vi.waitFor(async () => {
    const answer = await fetch(url).catch(() => undefined);
    if (answer?.ok !== true) throw new Error(`${program} does not answer; it said:\n${output}`);
  }, PATIENCE);
  async function ends(): Promise<never> {
    await closed;
    throw new Error(`${program} ended; it said:\n${output}`);
  }
  await Promise.race([answers, ends()]);
  return opened.move();
}
