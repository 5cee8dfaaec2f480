import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { limitConcurrency } from '../src/concurrency/limit-concurrency.ts';
import { BOUNDS, type Bounds, MISTAKES, type Mistake, STATEMENTS } from './protocol/bounds.ts';
import { findSpin, type Search, type SearchOptions } from './protocol/spin.ts';
import { type Row, SOURCE } from './row.ts';

const MODEL = fileURLToPath(new URL('protocol/protocol.pml', import.meta.url));
/** Searches at the same time. */
const PARALLEL = 2;
const MAX_MEMORY_MB = 9000;

type Run = (options: Omit<SearchOptions, 'model' | 'memoryMb'>) => Promise<Search>;

/** Searches every state of the model of the protocol between workers with SPIN (docs/protocol.md). */
export const protocol: Row = {
  name: 'protocol',
  bug: {
    what: 'a statement is changed, and the model is not',
    part: 'statements',
    file: 'store/postgres/sql/poll-commit.ts',
    replace: [
      ['AND epoch = $2 AND version = $3 AND owner = $15', 'AND epoch = $2 AND owner = $15'],
    ],
    notice: /poll-commit\.ts has no longer/,
  },
  run: async ({ short, print, source = SOURCE, part }) => {
    await compareStatements(source);
    if (part === 'statements') return [];
    const spin = findSpin();
    const take = limitConcurrency(PARALLEL);
    const run: Run = (options) =>
      take(() => spin({ ...options, model: MODEL, memoryMb: MAX_MEMORY_MB }));
    const bounds = BOUNDS.filter((each) => !short || each.isShort);
    const searched = await Promise.all([
      ...bounds.map((each) => verify(each, short, run, print)),
      ...(short ? [] : MISTAKES.map((each) => find(each, run))),
    ]);
    return searched;
  },
};

/** Compares the statements that the model represents with the sources. @throws if one has changed */
async function compareStatements(source: string): Promise<void> {
  for (const [file, text] of STATEMENTS) {
    if (!(await readFile(`${source}/${file}`, 'utf8')).includes(text)) {
      throw new Error(`${file} has no longer "${text}": change proof/protocol/protocol.pml too`);
    }
  }
}

/** Searches every state within these bounds. @throws if a run breaks an assertion, or the search is not complete */
async function verify(
  { what, defines, mustEnd }: Bounds,
  short: boolean,
  run: Run,
  print: (line: string) => void,
): Promise<readonly [string, string]> {
  const found = await run({
    defines,
    optimisation: short ? '-O0' : '-O2',
    ...(!short && mustEnd && { mustEnd }),
  });
  const { error, isComplete, isJudged } = found;
  if (error !== undefined) {
    throw new Error(`${what}: after ${error.steps} steps ${error.text}`);
  }
  if (!isComplete) throw new Error(`${what}: not every state was visited`);
  if (!isJudged) throw new Error(`${what}: no run was judged at its end`);
  print(`${what}: ${found.states} states`);
  const ends = !short && mustEnd ? ', every run ends' : '';
  return [
    what,
    `${found.states} states, ${found.depth} steps at most, 0 errors${ends}; ${found.seconds.toFixed(1)} s, ${Math.round(found.memoryMb)} MB`,
  ];
}

/** Searches a model with a mistake. @throws if no run breaks the expected assertion */
async function find(
  { what, name, bounds, notice }: Mistake,
  run: Run,
): Promise<readonly [string, string]> {
  const defines = { ...bounds.defines, [name]: undefined };
  const { error, states } = await run({ defines, optimisation: '-O0' });
  if (error === undefined) throw new Error(`not noticed: ${what} (${name})`);
  if (!error.text.includes(notice)) throw new Error(`${what} (${name}): noticed ${error.text}`);
  return [`mistake: ${what}`, `found after ${states} states: ${notice}, ${error.steps} steps`];
}
