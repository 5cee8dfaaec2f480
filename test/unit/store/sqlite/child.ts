import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { COMPILE_CACHE } from '../../../support/compile-cache.ts';

/** A process that runs a script of this folder, and the lines that it prints. */
export interface Child extends AsyncDisposable {
  readonly pid: number | undefined;
  readonly lines: AsyncIterableIterator<string>;
  kill(): Promise<void>;
}

export function startChild(script: string, ...args: readonly string[]): Child {
  const file = fileURLToPath(new URL(script, import.meta.url));
  const child = spawn(process.execPath, [file, ...args], {
    env: { ...process.env, ...COMPILE_CACHE },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    pid: child.pid,
    lines,
    kill: () => kill(child),
    [Symbol.asyncDispose]: () => kill(child),
  };
}

/** Kills the process as the kernel does: none of its code runs any more. */
async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, 'close');
  child.kill('SIGKILL');
  await closed;
}
