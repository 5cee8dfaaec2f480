import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual, promisify } from 'node:util';
import Database from 'better-sqlite3';
import { openReader } from '../../src/store/sqlite/sqlite-reader.ts';
import { temporaryDirectory } from '../../test/support/temporary.ts';
import { callsOf, EVERY_THREAD } from '../strace.ts';
import type { WorkloadReport } from './rounds.ts';

const WORKLOAD = fileURLToPath(new URL('workload.ts', import.meta.url));
const CALLS = ['pwrite64', 'fsync', 'ftruncate', 'unlink'] as const;

/** Failure of a system call from its n-th execution on, `times` times in a row. */
export interface Fault {
  readonly call: (typeof CALLS)[number];
  readonly error: 'EIO' | 'ENOSPC';
  readonly nth: number;
  readonly times: number;
}

interface Outcome {
  readonly report: WorkloadReport;
  readonly rows: unknown;
}

/** Creates a runner of the workload, which must leave the same rows with and without faults. */
export function createNthCall(strace: string, source: string) {
  async function run(args: readonly string[], traceFile: string, path: string): Promise<Outcome> {
    const report = await runWorkload(args, traceFile, path);
    return { report, rows: await readRows(path) };
  }

  async function runWorkload(
    args: readonly string[],
    traceFile: string,
    path: string,
  ): Promise<WorkloadReport> {
    const { stdout } = await promisify(execFile)(
      strace,
      [
        ...EVERY_THREAD,
        '-o',
        traceFile,
        '-e',
        `trace=${CALLS.join()}`,
        ...args,
        process.execPath,
      ].concat(WORKLOAD, source, path),
    );
    return JSON.parse(stdout) as WorkloadReport;
  }

  return {
    /** Returns how often each call is made without faults, and the rows of the store then. */
    measure: async () => {
      await using directory = await temporaryDirectory();
      const trace = join(directory.path, 'trace');
      const { rows, report } = await run([], trace, join(directory.path, 'store.db'));
      if (report.failed.length > 0) throw new Error(`failed: ${report.failed.join('; ')}`);
      const lines = callsOf(await readFile(trace, 'latin1'));
      const count = (call: string) => lines.filter((line) => line.startsWith(`${call}(`)).length;
      return { rows, counts: CALLS.map((call) => [call, count(call)] as const) };
    },
    /** Runs with a fault. @throws if rows are lost, or a failed commit is not emitted */
    runWithFault: async (
      { call, error, nth, times }: Fault,
      expected: unknown,
    ): Promise<Outcome> => {
      await using directory = await temporaryDirectory();
      const inject = `inject=${call}:error=${error}:when=${nth}..${nth + times - 1}`;
      const path = join(directory.path, 'store.db');
      const report = await runWorkload(['-e', inject], '/dev/null', path);
      // A failed opening must not harm the next one.
      if (!report.opened) await runWorkload([], '/dev/null', path);
      const rows = await readRows(path);
      if (!isDeepStrictEqual(rows, expected)) throw new Error(`${inject}: something is lost`);
      if (report.counted !== report.commits) {
        throw new Error(`${inject}: ${report.commits} commits failed, ${report.counted} emitted`);
      }
      return { report, rows };
    },
  };
}

async function readRows(path: string): Promise<unknown> {
  const reader = await openReader({ path });
  const { projects } = await reader.snapshot();
  const rows = {
    transitions: await reader.transitions({}),
    failures: await reader.failures({}),
    statuses: await reader.statuses({}),
    listings: projects.map(({ listings }) => listings),
  };
  await reader.close();
  const db = new Database(path, { readonly: true });
  const check = db.pragma('integrity_check', { simple: true });
  db.close();
  if (check !== 'ok') throw new Error(`integrity_check: ${String(check)}`);
  return rows;
}
