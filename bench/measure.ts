import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import type { Profiler } from 'node:inspector';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryDirectory } from '../test/support/temporary.ts';
import { API_KEY, CONCURRENCY, type Outcome, type Task } from './contenders/contender.ts';
import type { ContenderName } from './contenders/contenders.ts';
import { startNode } from './node-process.ts';
import { PYTHON } from './python.ts';
import type { Figures } from './result.ts';
import { median } from './statistics.ts';
import { projectIds, type Workload } from './workload.ts';

/** A task and how often to do it. */
export interface MeasuredTask extends Task {
  readonly contender: ContenderName;
  /** Rounds before the measured ones. */
  readonly warmUp: number;
  /** Measured rounds. */
  readonly polls: number;
  /** Whether each round has an empty store and a new client. */
  readonly fresh: boolean;
  /** Path of the file for the CPU profiles of the measured rounds. */
  readonly profile?: string;
}

/** Figures of one process; CPU and wall time are means over its rounds. */
export type Sample = Figures & {
  /** Outcome of the last round. */
  readonly outcome: Outcome;
};

export interface Scenario extends Pick<MeasuredTask, 'warmUp' | 'polls' | 'fresh'> {
  readonly workload: Workload;
}

const run = promisify(execFile);
const METRICS = ['cpuMs', 'wallMs', 'blockMs', 'worstBlockMs', 'peakBytes', 'restBytes'] as const;
const MOST_OUTPUT_BYTES = 16 * 1024 * 1024;

export interface MeasureOptions {
  readonly runs: number;
  /** Receives the CPU profiles of evalwatch's rounds in the last run. */
  readonly onProfiles?: (profiles: readonly Profiler.Profile[]) => void;
}

/** Measures the contenders in turn, in each run another one first, and returns the medians. */
export async function measure(
  scenario: Scenario,
  contenders: readonly ContenderName[],
  { runs, onProfiles }: MeasureOptions,
): Promise<Readonly<Record<string, Figures>>> {
  await using service = startNode('bench/service-process.ts', JSON.stringify(scenario.workload));
  const url = await service.line();
  const samples = new Map<ContenderName, Sample[]>(contenders.map((name) => [name, []]));
  for (let number = 0; number < runs; number += 1) {
    const first = number % contenders.length;
    for (const contender of [...contenders.slice(first), ...contenders.slice(0, first)]) {
      const isProfiled = contender.startsWith('evalwatch') && number === runs - 1;
      const baseUrl = `${url}${encodeURIComponent(contender)}-${number}`;
      const asked = { contender, baseUrl };
      const sample = await measureOnce(scenario, asked, isProfiled ? onProfiles : undefined);
      samples.get(contender)?.push(sample);
    }
  }
  return Object.fromEntries(samples.entries().map(([name, taken]) => [name, mediansOf(taken)]));
}

async function measureOnce(
  { workload, ...rounds }: Scenario,
  asked: Pick<MeasuredTask, 'contender' | 'baseUrl'>,
  onProfiles: MeasureOptions['onProfiles'],
): Promise<Sample> {
  await using directory = await temporaryDirectory();
  const profile = join(directory.path, 'profiles.json');
  const sample = await runContender({
    ...rounds,
    ...asked,
    projects: projectIds(workload.projects),
    directory: directory.path,
    ...(onProfiles !== undefined && { profile }),
  });
  onProfiles?.(JSON.parse(await readFile(profile, 'utf8')) as Profiler.Profile[]);
  return sample;
}

/** Runs the task of one contender in a process of its own. */
export async function runContender(task: MeasuredTask): Promise<Sample> {
  const [program, script] =
    task.contender === 'python'
      ? [PYTHON, 'contenders/python_peer.py']
      : [process.execPath, 'measured-process.ts'];
  // The Python script cannot import the constants.
  const argument = JSON.stringify({ ...task, apiKey: API_KEY, concurrency: CONCURRENCY });
  const { stdout } = await run(program, [join(import.meta.dirname, script), argument], {
    maxBuffer: MOST_OUTPUT_BYTES,
  });
  return JSON.parse(stdout) as Sample;
}

/** Returns the median of each measured figure. */
export function mediansOf(samples: readonly Figures[]): Figures {
  const medianOf = (metric: keyof Figures) => {
    const values = samples.map((sample) => sample[metric]).filter((value) => value !== undefined);
    return values.length === 0 ? [] : [[metric, median(values)] as const];
  };
  return Object.fromEntries(METRICS.flatMap(medianOf));
}
