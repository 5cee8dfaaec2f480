import { parseArgs } from 'node:util';
import { ROWS } from './rows/rows.ts';

const NAMES = ROWS.map(({ name }) => name);
const SIZES = '1000,10000,100000';
const RUNS = '5';
export const USAGE = `usage: npm run bench -- [row …] [option …]

rows: ${NAMES.join(' ')}; all of them if none is named

--n ${SIZES}   prompts in a listing
--runs ${RUNS}                  processes that each contender is measured in
--quick                   rest for 15 s instead of 60 s before memory is read
--profile                 print the functions that took most time themselves
--json FILE               write every figure
--from FILE               measure nothing, take the figures of an earlier --json
--write-docs              write docs/performance.md and its plots; needs every row`;

export interface Options {
  readonly rows: readonly string[];
  readonly sizes: readonly number[];
  readonly runs: number;
  readonly quick: boolean;
  readonly profile: boolean;
  readonly json: string | undefined;
  readonly from: string | undefined;
  readonly writeDocs: boolean;
}

/** @throws {Error} if a row or an option is invalid */
export function readOptions(args: readonly string[]): Options {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      n: { type: 'string', default: SIZES },
      runs: { type: 'string', default: RUNS },
      quick: { type: 'boolean', default: false },
      profile: { type: 'boolean', default: false },
      json: { type: 'string' },
      from: { type: 'string' },
      'write-docs': { type: 'boolean', default: false },
    },
  });
  const unknown = positionals.find((name) => !NAMES.includes(name));
  if (unknown !== undefined) throw new Error(`there is no row ${unknown}`);
  if (values['write-docs'] && positionals.length > 0)
    throw new Error('--write-docs needs every row');
  return {
    rows: positionals.length > 0 ? positionals : NAMES,
    sizes: values.n.split(',').map((size) => count('--n', size)),
    runs: count('--runs', values.runs),
    quick: values.quick,
    profile: values.profile,
    json: values.json,
    from: values.from,
    writeDocs: values['write-docs'],
  };
}

function count(option: string, text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new Error(`${option} needs a number greater than 0, not ${text}`);
}
