import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { vi } from 'vitest';
import { COMPILE_CACHE } from './compile-cache.ts';
import { PATIENCE } from './evalwatch.ts';

const HEALTH_CHECK = fileURLToPath(new URL('../../src/health-check.ts', import.meta.url));

interface Checked {
  readonly code: number;
  readonly stderr: string;
}

/** Runs the health check of the image once. */
export async function healthCheck(env: Readonly<Record<string, string>>): Promise<Checked> {
  const child = spawn(process.execPath, [HEALTH_CHECK], {
    env: { PATH: process.env['PATH'], ...COMPILE_CACHE, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'close')]);
  return { code: code as number, stderr };
}

/** Runs the health check until it succeeds: it gives a daemon 4 s to answer, which is short on a busy machine. */
export async function patientHealthCheck(env: Readonly<Record<string, string>>): Promise<Checked> {
  return await vi.waitFor(async () => {
    const checked = await healthCheck(env);
    if (checked.code !== 0) throw new Error(`exit code ${checked.code}: ${checked.stderr}`);
    return checked;
  }, PATIENCE);
}
