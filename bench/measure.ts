import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import { installDebianPackages } from '../test/support/debian-tool.ts';
import { ALLOCATION, NODE_FLAGS } from '../test/support/node-flags.ts';
import { temporaryDirectory } from '../test/support/temporary.ts';
import { API_KEY, CONCURRENCY, missing, startService } from './processes.ts';
import type { Figures, RowOptions, Runs } from './report.ts';
import { projectIds, type Workload } from './workload.ts';

/** Task of a contender, which runs in a process of its own. */
export interface Task {
  readonly contender: string;
  readonly baseUrl: string;
  /** Ids of the projects, which a contender polls in sequence or in parallel. */
  readonly projects: readonly string[];
  /** Empty directory for stored files. */
  readonly directory: string;
  /** Rounds before the measured ones. */
  readonly warmUp: number;
  /** Measured rounds. */
  readonly polls: number;
  /** Whether each round has an empty store and a new client. */
  readonly fresh: boolean;
  /** Whether some prompts have changed in each round. */
  readonly isChanging: boolean;
}

export interface Contender {
  /** Does the unmeasured work before each round. */
  prepare?(): Promise<void>;
  /** Polls every project once, or renders a scrape. Returns the number of prompts if it knows them. */
  poll(): Promise<number | undefined>;
  close(): Promise<void>;
}

export type OpenContender = (task: Task) => Promise<Contender>;

/** What the process of a contender prints. */
export interface Sample {
  readonly figures: Figures;
  /** Number of prompts in the last round, if the contender knows it. */
  readonly prompts?: number;
}

export interface Scenario extends Pick<Task, 'warmUp' | 'polls' | 'fresh'> {
  readonly workload: Workload;
}

const run = promisify(execFile);
/** Python of Debian. Another Python on the PATH does not see Debian's packages. */
const PYTHON = '/usr/bin/python3';
const PYTHON_PACKAGES = ['python3', 'python3-requests', 'python3-prometheus-client'];

/** Measures the contenders in turn, in each run another one first. */
export async function measure(
  { workload, ...rounds }: Scenario,
  contenders: readonly string[],
  { runs, profiles }: Pick<RowOptions, 'runs' | 'profiles'>,
): Promise<Runs> {
  await using service = startService(workload);
  const url = await service.line();
  const { projects: count, prompts, versions } = workload;
  const projects = projectIds(count);
  const samples = new Map<string, Figures[]>(contenders.map((name) => [name, []]));
  for (let number = 0; number < runs; number += 1) {
    const first = number % contenders.length;
    for (const contender of [...contenders.slice(first), ...contenders.slice(0, first)]) {
      await using directory = await temporaryDirectory();
      const baseUrl = `${url}/${encodeURIComponent(contender)}-${number}`;
      const place = { projects, directory: directory.path, isChanging: versions > 1 };
      const isLast = number === runs - 1 && contender.startsWith('evalwatch');
      const task = { ...rounds, ...place, contender, baseUrl };
      const sample = await runContender(task, isLast ? profiles : undefined);
      if ((sample.prompts ?? count * prompts) !== count * prompts) {
        throw new Error(`${contender} found ${sample.prompts} prompts`);
      }
      samples.get(contender)?.push(sample.figures);
    }
  }
  return Object.fromEntries(samples);
}

/**
 * Runs the task of one contender in a process of its own: evalwatch with the flags of the daemon, the others as one would.
 * @param profiles directory for the CPU profiles of its threads, from the start of the process on
 */
async function runContender(task: Task, profiles: string | undefined): Promise<Sample> {
  const isOurs = task.contender.startsWith('evalwatch');
  const flags = [
    ...(isOurs ? NODE_FLAGS : []),
    ...(profiles === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profiles}`]),
  ];
  const [program, ...args] =
    task.contender === 'python'
      ? [PYTHON, 'python_peer.py']
      : [process.execPath, ...flags, 'measured-process.ts'];
  // The Python script cannot import the constants.
  const argument = JSON.stringify({ ...task, apiKey: API_KEY, concurrency: CONCURRENCY });
  const { stdout } = await run(program, [...args, argument], {
    cwd: import.meta.dirname,
    env: { ...process.env, ...(isOurs && ALLOCATION) },
  });
  return JSON.parse(stdout) as Sample;
}

/**
 * Returns whether the Python peer can run, after the installation of its packages if possible.
 * @throws {Error} if not and `CI` is set
 */
export function findPython(): boolean {
  const isComplete = () =>
    spawnSync(PYTHON, ['-c', 'import requests, prometheus_client']).status === 0;
  if (isComplete() || (installDebianPackages(...PYTHON_PACKAGES) && isComplete())) return true;
  missing('the Python peer, which needs python3-requests and python3-prometheus-client');
  return false;
}
