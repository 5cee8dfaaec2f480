import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { debianTool } from '../../test/support/debian-tool.ts';
import { temporaryDirectory } from '../../test/support/temporary.ts';
import { required } from '../row.ts';

const run = promisify(execFile);

/** Values of the names that the model reads; a mistake is a name without a value. */
export type Defines = Readonly<Record<string, number | undefined>>;

export interface SearchOptions {
  readonly model: string;
  readonly defines: Defines;
  /** Also searches for runs that never end, which doubles the states. */
  readonly mustEnd?: boolean;
  /** Option of gcc; `-O2` also compresses the states. A short search is not worth the time of either. */
  readonly optimisation: '-O0' | '-O2';
  /** Memory after which the search gives up, MB. */
  readonly memoryMb: number;
}

export interface Search {
  readonly states: number;
  /** Steps of the longest run. */
  readonly depth: number;
  readonly memoryMb: number;
  readonly seconds: number;
  /** The assertion that a run breaks, and the number of steps of that run. */
  readonly error: { readonly text: string; readonly steps: number } | undefined;
  /** Whether every state was visited: no limit was reached, and no error ended the search. */
  readonly isComplete: boolean;
  /** Whether the process that judges the end of a run was executed to its last assertion. */
  readonly isJudged: boolean;
}

/** Maximum steps of a run. A longer one makes the search incomplete. */
const MAX_DEPTH = 200_000;

/** Returns a function that searches every state of a model. @throws {Unavailable} without SPIN or gcc */
export function findSpin(): (options: SearchOptions) => Promise<Search> {
  const spin = required('spin', debianTool('spin', 'spin'));
  const gcc = required('gcc', debianTool('build-essential', 'gcc'));
  return async (options) => await search(spin, gcc, options);
}

async function search(spin: string, gcc: string, options: SearchOptions): Promise<Search> {
  const { model, defines, mustEnd = false, optimisation, memoryMb } = options;
  await using directory = await temporaryDirectory();
  const inside = { cwd: directory.path, maxBuffer: 64 * 1024 * 1024 };
  const names = Object.entries(defines).map(([name, value]) => `-D${name}=${value ?? 1}`);
  await run(spin, ['-a', ...names, model], inside);
  const kind = mustEnd ? '-DNP' : '-DSAFETY';
  const limits = [
    '-DVECTORSZ=2048',
    `-DMEMLIM=${memoryMb}`,
    ...(optimisation === '-O2' ? ['-DCOLLAPSE'] : []),
  ];
  await run(gcc, ['-w', optimisation, kind, ...limits, '-o', 'pan', 'pan.c'], inside);
  const started = performance.now();
  // -E: processes that wait for ever are no error. The process that judges the end of a run checks them.
  const args = ['-E', `-m${MAX_DEPTH}`, '-w22', ...(mustEnd ? ['-l'] : [])];
  const { stdout } = await run(`${directory.path}/pan`, args, inside);
  return { ...read(stdout), seconds: (performance.now() - started) / 1000 };
}

/** Reads the report of the program that SPIN generates. */
function read(report: string): Omit<Search, 'seconds'> {
  const number = (pattern: RegExp) => Number(pattern.exec(report)?.[1] ?? Number.NaN);
  const broken = /^pan:\d+: (?<text>.+) \(at depth (?<steps>\d+)\)$/m.exec(report)?.groups;
  const error = broken && { text: broken['text'] ?? '', steps: Number(broken['steps']) };
  const isLimited = /search depth too small|reached -DMEMLIM|out of memory|not completed/.test(
    report,
  );
  return {
    states: number(/^\s*(\d+) states, stored/m),
    depth: number(/depth reached (\d+)/),
    memoryMb: number(/([\d.]+)\s+total actual memory usage/),
    error,
    isComplete:
      !isLimited &&
      /^Full statespace search for:/m.test(report) &&
      /, errors: 0$/m.test(report) &&
      error === undefined,
    isJudged: /^unreached in proctype Judge\n\s*\(0 of \d+ states\)/m.test(report),
  };
}
