import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { startPostgres } from '../../test/support/postgres.ts';
import type { Outcome } from './run.ts';
import type { Part, Scenario } from './scenario.ts';

const OWN_CHILD = fileURLToPath(new URL('child.ts', import.meta.url));
/** A disk in memory: every commit is flushed. */
const MEMORY_DISK = '/dev/shm';
/** Most objects of an event live shorter than it takes to fill this. */
const YOUNG_SPACE = '--max-semi-space-size=32';
/** Nothing of the server may depend on real time. */
const SETTINGS = ['autovacuum=off', 'synchronous_commit=off'];

/** A run, and the CPU time of its process until then. */
export type Report = Outcome & { readonly scenario: Scenario; readonly cpuSeconds: number };

/** Simulates with the sources in a directory, in other processes. */
export interface Player extends AsyncDisposable {
  /** Simulates these in one process, one after the other, until one finds something. */
  play(scenarios: readonly Scenario[]): AsyncGenerator<Report>;
}

/** Starts the server of the workers, if there is a real one. */
export async function openPlayer(part: Part, source: string): Promise<Player> {
  const server = part === 'server' ? await startPostgres({ settings: SETTINGS }) : undefined;
  return {
    play: async function* play(scenarios) {
      const runs: string[] = [];
      for (const scenario of scenarios) {
        const database = part === 'workers' ? 'model' : (await server?.createDatabase())?.url;
        runs.push(JSON.stringify({ ...scenario, database }));
      }
      // A mistake in the model of the server has a copy of it.
      const copied = join(source, '../proof/simulation/child.ts');
      const program = existsSync(copied) ? copied : OWN_CHILD;
      const child = spawn(process.execPath, [YOUNG_SPACE, program, source, ...runs], {
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
