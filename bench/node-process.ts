import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { ALLOCATION, NODE_FLAGS } from '../test/support/node-flags.ts';

export const ROOT = join(import.meta.dirname, '..');

/** A Node process; `await using` kills it. */
export interface NodeProcess extends AsyncDisposable {
  readonly pid: number;
  /** Returns the next line of stdout that contains all these texts. @throws {Error} if it ends before */
  line(...texts: readonly string[]): Promise<string>;
}

/** Starts a program of this repository with the Node flags and the memory allocation of the image and the systemd unit. */
export function startNode(program: string, ...args: readonly string[]): NodeProcess {
  return startNodeWith({ flags: NODE_FLAGS }, program, ...args);
}

/** Node flags, and environment variables in addition to those of {@link startNode}. */
export interface NodeOptions {
  readonly flags: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export function startNodeWith(
  { flags, env }: NodeOptions,
  program: string,
  ...args: readonly string[]
): NodeProcess {
  const child = spawn(process.execPath, [...flags, join(ROOT, program), ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { PATH: process.env['PATH'], ...ALLOCATION, ...env },
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const ended = once(child, 'close');
  const { pid } = child;
  if (pid === undefined) throw new Error(`${program} could not be started`);
  return {
    pid,
    line: async (...texts) => {
      for (;;) {
        const { value, done } = await lines.next();
        if (done === true) throw new Error(`${program} ended without a line of ${texts.join(' ')}`);
        if (texts.every((text) => value.includes(text))) return value;
      }
    },
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** Returns the resident memory of a process, current (`VmRSS`) or peak (`VmHWM`), in bytes. Linux only. */
export async function memoryOf(pid: number | 'self', field: 'VmHWM' | 'VmRSS'): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const [, kilobytes] = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status) ?? [];
  return Number(kilobytes) * 1024;
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
