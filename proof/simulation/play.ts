import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { startPostgres } from '../../test/support/postgres.ts';
import type { Outcome } from './run.ts';
import type { Part, Scenario } from './scenario.ts';

const OWN_CHILD = fileURLToPath(new URL('child.ts', import.meta.url));
/** Disk in memory, because every commit is flushed. */
const MEMORY_DISK = '/dev/shm';
/**
 * A young generation, in MiB, in which most objects die before it is full, and compilers that begin at once: functions run
 * millions of times. A process takes up to 400 MB.
 */
const NODE_OPTIONS = [
  '--min-semi-space-size=128',
  '--max-semi-space-size=128',
  '--no-lazy-feedback-allocation',
];
/** Nothing of the server may depend on real time. */
const SETTINGS = ['autovacuum=off', 'synchronous_commit=off'];

/** A run, and the CPU time of its process until then. */
export type Report = Outcome & { readonly scenario: Scenario; readonly cpuSeconds: number };

/** Simulates with the sources in a directory, in other processes. */
export interface Player extends AsyncDisposable {
  /** Simulates the scenarios in one process, one after the other, until one finds something. */
  play(scenarios: readonly Scenario[]): AsyncGenerator<Report>;
}

/** Opens a player, with a PostgreSQL server if the part needs one. */
export async function openPlayer(part: Part, source: string): Promise<Player> {
  const server = part === 'server' ? await startPostgres({ settings: SETTINGS }) : undefined;
  return {
    play: async function* play(scenarios) {
      const runs: string[] = [];
      for (const scenario of scenarios) {
        const database = part === 'workers' ? 'model' : (await server?.createDatabase())?.url;
        runs.push(JSON.stringify({ ...scenario, database }));
      }
      // A mistake in the model is planted in a copy of this program.
      const copied = join(source, '../proof/simulation/child.ts');
      const program = existsSync(copied) ? copied : OWN_CHILD;
      const child = spawn(process.execPath, [...NODE_OPTIONS, program, source, ...runs], {
        stdio: ['ignore', 'pipe', 'inherit'],
        env: { ...process.env, ...(existsSync(MEMORY_DISK) && { TMPDIR: MEMORY_DISK }) },
      });
      let ended = 0;
      try {
        for await (const line of createInterface(child.stdout)) {
          const report = JSON.parse(line) as Report;
          ended += 1;
          yield report;
          if (report.faults.length > 0) return;
        }
        if (ended < scenarios.length) {
          throw new Error(`the simulation ended before seed ${scenarios[ended]?.seed}`);
        }
      } finally {
        child.kill('SIGKILL');
      }
    },
    [Symbol.asyncDispose]: async () => {
      await server?.[Symbol.asyncDispose]();
    },
  };
}
