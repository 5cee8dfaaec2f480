import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { limitConcurrency } from '../src/concurrency/limit-concurrency.ts';
import { debianTool } from '../test/support/debian-tool.ts';
import { temporaryDirectory } from '../test/support/temporary.ts';
import { type Figures, required, type Row } from './row.ts';

/** Numbers of workers, projects and changes, and of each fault in one run; 0 if it is not named. */
const BOUNDS = {
  commits: { W: 2, P: 1, CHANGES: 3, CRASHES: 1, LOSSES: 1, LOST: 1 },
  twoProjects: { W: 2, P: 2, CHANGES: 1, LOST: 1 },
  twoProjectsCrash: { W: 2, P: 2, CHANGES: 1, CRASHES: 1 },
  failure: { W: 2, P: 1, CHANGES: 1, REPORTS: 1, CRASHES: 1, LOSSES: 1, LOST: 1 },
  failureRelease: { W: 2, P: 2, CHANGES: 1, REPORTS: 1, LOST: 1 },
  standby: { W: 2, P: 1, CHANGES: 2, LOSSES: 1, REVERTS: 1 },
  standbyFailure: { W: 2, P: 1, CHANGES: 1, REPORTS: 1, LOST: 1, REVERTS: 1 },
} satisfies Readonly<Record<string, Defines>>;
type Bound = keyof typeof BOUNDS;

/** Bounds of the short form. */
const SHORT: readonly Bound[] = ['failureRelease', 'standbyFailure'];
/** Bounds in which the search for runs that never end, which doubles the states, would take too long. */
const MAY_RUN_ON: ReadonlySet<string> = new Set<Bound>(['commits']);

/** Mistakes that the model makes if the name is defined, each with a part of the assertion that a run has to break. */
const MISTAKES: readonly (readonly [name: string, within: Bound, notice: string, what: string])[] =
  [
    ['ANY_TOKEN', 'commits', 'owner==w', 'a commit does not compare the token'],
    ['CLAIM_KEEPS_TOKEN', 'commits', 'owner==w', 'a claim keeps the token'],
    ['LOST_IS_FAILURE', 'commits', 'untold', 'a commit with a lost answer counts as failed'],
    ['LOST_IS_SUCCESS', 'commits', 'untold', 'a commit with a lost answer counts as made'],
    ['REPEAT_WITH_NEW', 'commits', 'untold', 'a commit is repeated with another token'],
    ['EMIT_FIRST', 'commits', 'untold', 'a transition is emitted before its commit'],
    ['STALE_MEMORY', 'commits', 'stored==', 'the memory of a listing outlives its token'],
    ['ORPHANS_STAY', 'commits', '!(dead[', 'a project of a dead worker is not free'],
    ['RELEASE_KEEPS_OWNER', 'twoProjects', 'memory[', 'a release keeps the owner'],
    [
      'ADOPTS_GIVEN',
      'failureRelease',
      'report[0]==0',
      'a project is owned again under a token that was given back',
    ],
    ['SETTLE_FIRST', 'failure', 'lines[p]>0', 'a failure is settled before its line'],
    ['SETTLE_AGAIN', 'failure', 'settlements==1', 'a settled failure is settled again'],
    ['SETTLE_ANY', 'standbyFailure', 'lines[p]>0', 'a failure is settled by its prompt alone'],
    ['NO_LEASE_CHECK', 'failure', 'report[0]==0', 'a failure is reported after the lease'],
  ];

/** Searches at the same time. */
const PARALLEL = 2;
const MAX_MEMORY_MB = 9000;
/** Maximum steps of a run. A longer one makes the search incomplete. */
const MAX_DEPTH = 200_000;

/** Values of names that the model reads. */
type Defines = Readonly<Record<string, number>>;
type Search = (defines: Defines, isThorough: boolean, mustEnd?: boolean) => Promise<Found>;

/** Searches every state of the model of the protocol between workers with SPIN (docs/protocol.md). */
export const protocol: Row = {
  name: 'protocol',
  // It searches the model alone: no change of the sources can break it.
  judges: [],
  run: async ({ short, print }) => {
    const spin = required('spin', debianTool('spin', 'spin'));
    const gcc = required('gcc', debianTool('build-essential', 'gcc'));
    const take = limitConcurrency(PARALLEL);
    const search: Search = (...args) => take(() => searchWith(spin, gcc, ...args));
    const bounds = short ? SHORT : (Object.keys(BOUNDS) as Bound[]);
    return await Promise.all<Figures[number]>([
      ...bounds.map(async (name) => {
        const found = await verify(name, short, search);
        print(`${name}: ${found}`);
        return [name, found] as const;
      }),
      ...MISTAKES.map(async (mistake) => {
        return [`mistake: ${mistake[3]}`, await find(mistake, search)] as const;
      }),
    ]);
  },
};

/** Searches every state within these bounds. @throws if a run breaks an assertion, or the search is not complete */
async function verify(name: Bound, short: boolean, search: Search): Promise<string> {
  const mustEnd = !short && !MAY_RUN_ON.has(name);
  const found = await search(BOUNDS[name], !short, mustEnd);
  const { error, isComplete, isJudged, states, depth } = found;
  if (error !== undefined) {
    throw new Error(
      `${name}: after ${error.steps} steps ${error.text}; to see it: ${found.byHand}`,
    );
  }
  if (!isComplete) throw new Error(`${name}: not every state was visited`);
  if (!isJudged) throw new Error(`${name}: no run was judged at its end`);
  return `${states} states, ${depth} steps at most, 0 errors${mustEnd ? ', every run ends' : ''}`;
}

/** Searches the model with a mistake. @throws if no run breaks the expected assertion */
async function find(
  [name, within, notice, what]: (typeof MISTAKES)[number],
  search: Search,
): Promise<string> {
  const { error, states } = await search({ ...BOUNDS[within], [name]: 1 }, false);
  if (error === undefined) throw new Error(`not noticed: ${what} (${name})`);
  if (!error.text.includes(notice)) throw new Error(`${what} (${name}): noticed ${error.text}`);
  return `found after ${states} states: ${notice}, ${error.steps} steps`;
}

interface Found {
  readonly states: number;
  /** Steps of the longest run. */
  readonly depth: number;
  /** The assertion that a run breaks, and the number of steps of that run. */
  readonly error: { readonly text: string; readonly steps: number } | undefined;
  /** Whether every state was visited: no limit was reached, and no error ended the search. */
  readonly isComplete: boolean;
  /** Whether the process that judges the end of a run was executed to its last assertion. */
  readonly isJudged: boolean;
  /** Commands that print the run that breaks an assertion. */
  readonly byHand: string;
}

/**
 * Searches every state of the model with these names.
 * @param isThorough whether gcc optimises and states are compressed, which a short search is not worth
 * @param mustEnd whether to search for runs that never end, too
 */
async function searchWith(
  spin: string,
  gcc: string,
  defines: Defines,
  isThorough: boolean,
  mustEnd = false,
): Promise<Found> {
  await using directory = await temporaryDirectory();
  const run = (program: string, args: readonly string[]) =>
    promisify(execFile)(program, [...args], {
      cwd: directory.path,
      maxBuffer: 64 * 1024 * 1024,
    });
  const names = Object.entries(defines).map(([name, value]) => `-D${name}=${value}`);
  const path = 'protocol/token.pml';
  await run(spin, ['-a', ...names, fileURLToPath(new URL(path, import.meta.url))]);
  const kind = mustEnd ? '-DNP' : '-DSAFETY';
  const limits = ['-DVECTORSZ=2048', `-DMEMLIM=${MAX_MEMORY_MB}`];
  const effort = isThorough ? ['-O2', '-DCOLLAPSE'] : ['-O0'];
  await run(gcc, ['-w', ...effort, kind, ...limits, '-o', 'pan', 'pan.c']);
  // -E: processes that wait for ever are no error. The process that judges the end of a run checks them.
  const args = ['-E', `-m${MAX_DEPTH}`, '-w22', ...(mustEnd ? ['-l'] : [])];
  const { stdout } = await run(`${directory.path}/pan`, args);
  const model = `${names.join(' ')} proof/${path}`;
  const byHand = `spin -a ${model} && gcc ${kind} ${limits.join(' ')} -o pan pan.c && ./pan ${args.join(' ')}; spin -t -p ${model}`;
  return { ...read(stdout), byHand };
}

/** Reads the report of the program that SPIN generates. */
function read(report: string): Omit<Found, 'byHand'> {
  const number = (pattern: RegExp) => Number(pattern.exec(report)?.[1] ?? Number.NaN);
  const broken = /^pan:\d+: (?<text>.+) \(at depth (?<steps>\d+)\)$/m.exec(report)?.groups;
  const error = broken && { text: broken['text'] ?? '', steps: Number(broken['steps']) };
  const isLimited = /search depth too small|reached -DMEMLIM|out of memory|not completed/.test(
    report,
  );
  return {
    states: number(/^\s*(\d+) states, stored/m),
    depth: number(/depth reached (\d+)/),
    error,
    isComplete:
      !isLimited &&
      /^Full statespace search for:/m.test(report) &&
      /, errors: 0$/m.test(report) &&
      error === undefined,
    isJudged: /^unreached in proctype Judge\n\s*\(0 of \d+ states\)/m.test(report),
  };
}
