import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Outcome } from './run.ts';
import type { Part } from './scenario.ts';

const CHILD = fileURLToPath(new URL('child.ts', import.meta.url));
/** Disk in memory, unless `TMPDIR` is set: every commit is flushed. */
const MEMORY_DISK = '/dev/shm';
/**
 * A young generation, in MiB, in which most objects die before it is full, and compilers that begin at once: functions run
 * millions of times. A process takes up to 700 MB.
 */
const NODE_OPTIONS = [
  '--min-semi-space-size=64',
  '--max-semi-space-size=64',
  '--no-lazy-feedback-allocation',
];
/** Runs of one process, so that its memory cannot grow for ever. */
const RUNS_PER_PROCESS = 100;

/** A run. */
export interface Report extends Outcome {
  readonly seed: number;
  /** CPU time of all runs until the end of this one, with the start of their processes. */
  readonly cpuSeconds: number;
}

/** Plays seed after seed with the sources in a directory, in other processes, until the caller stops. */
export async function* play(part: Part, firstSeed: number, source: string): AsyncGenerator<Report> {
  let before = 0;
  let seed = firstSeed;
  for (;;) {
    const last = seed + RUNS_PER_PROCESS - 1;
    let hasEnded = false;
    const args = [CHILD, source, part, String(seed), String(RUNS_PER_PROCESS)];
    const child = spawn(process.execPath, [...NODE_OPTIONS, ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...(existsSync(MEMORY_DISK) && { TMPDIR: MEMORY_DISK }), ...process.env },
    });
    let cpuSeconds = 0;
    try {
      for await (const line of createInterface(child.stdout)) {
        const report = JSON.parse(line) as Report;
        cpuSeconds = report.cpuSeconds;
        seed = report.seed + 1;
        hasEnded = report.faults.length > 0 || report.seed === last;
        yield { ...report, cpuSeconds: before + cpuSeconds };
      }
      if (!hasEnded) throw new Error(`the simulation of ${part} ended in seed ${seed}`);
    } finally {
      child.kill('SIGKILL');
    }
    before += cpuSeconds;
  }
}
