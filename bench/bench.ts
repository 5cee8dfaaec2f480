/** Measures the cost of evalwatch beside floors and peers (docs/performance.md). */
import { availableParallelism, cpus, loadavg } from 'node:os';
import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { DAEMONS } from './daemons.ts';
import { POLLS } from './polls.ts';
import { print, type RowOptions } from './report.ts';
import { workers } from './workers.ts';

const ROWS = [...POLLS, ...DAEMONS, workers];
const NAMES = ROWS.map(({ name }) => name);
const USAGE = `usage: npm run bench -- [row …] [option …]

Rows, all of them if none is named:
${ROWS.map(({ name, title }) => `  ${name.padEnd(16)}${title}`).join('\n')}

Options:
  --n N,N…         prompts in a listing, for the first rows (default 1000,10000,100000)
  --runs N         processes in which each contender is measured (default 5)
  --seconds N      time that the rows contained, pressure and workers measure (default 60)
  --quick          rest for 15 s instead of 60 s before memory is read
  --profile DIR    write CPU profiles of evalwatch's last runs, for Chrome's developer tools
  --json FILE      write every figure

Size of the row workers:
  --workers N      (default 3)
  --projects N     (default 1000)
  --prompts N      in each project (default 100)
  --every S        seconds between the polls of a project (default 5)
  --warm-up S      time before the measured one (default 90, or twice --every if that is longer)`;

const { rows, json, ...options } = optionsOrExit();
const machine = `${cpus()[0]?.model.trim()}, ${availableParallelism()} cores`;
const load = loadavg()[0]?.toFixed(1);
console.log(`${machine}, Node ${process.versions.node}, load ${load}, ${options.runs} runs`);
const results: object[] = [];
for (const row of ROWS.filter(({ name }) => rows.includes(name))) {
  for await (const result of row.measure(options)) {
    print(row, result);
    results.push({ row: row.name, ...result });
    // Written after each result, so that an interrupted run keeps its figures.
    if (json !== undefined) await writeFile(json, `${JSON.stringify(results, null, 2)}\n`);
  }
}

interface Options extends RowOptions {
  readonly rows: readonly string[];
  readonly json: string | undefined;
}

function optionsOrExit(): Options {
  try {
    return readOptions();
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
    return process.exit(2);
  }
}

/** @throws {Error} if a row or an option is invalid */
function readOptions(): Options {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean', default: false } as const;
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      n: text,
      runs: text,
      seconds: text,
      quick: flag,
      profile: text,
      json: text,
      workers: text,
      projects: text,
      prompts: text,
      every: text,
      'warm-up': text,
      help: { ...flag, short: 'h' },
    },
  });
  if (values.help) {
    console.log(USAGE);
    process.exit();
  }
  const unknown = positionals.find((name) => !NAMES.includes(name));
  if (unknown !== undefined) throw new Error(`there is no row ${unknown}`);
  const every = count('--every', values.every ?? '5');
  return {
    rows: positionals.length > 0 ? positionals : NAMES,
    sizes: (values.n ?? '1000,10000,100000').split(',').map((size) => count('--n', size)),
    runs: count('--runs', values.runs ?? '5'),
    seconds: count('--seconds', values.seconds ?? '60'),
    isQuick: values.quick,
    profiles: values.profile && resolve(values.profile),
    json: values.json,
    workers: {
      count: count('--workers', values.workers ?? '3'),
      projects: count('--projects', values.projects ?? '1000'),
      prompts: count('--prompts', values.prompts ?? '100'),
      every,
      // Long enough for PostgreSQL to count the rows of new tables, which it does once a minute.
      warmUp: count('--warm-up', values['warm-up'] ?? String(Math.max(2 * every, 90))),
    },
  };
}

function count(option: string, text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new Error(`${option} needs a number greater than 0, not ${text}`);
}
