/** Measures the cost of evalwatch beside floors and peers (docs/performance.md). */
import { readFile, writeFile } from 'node:fs/promises';
import { thisMachine } from './machine.ts';
import { readOptions, USAGE, type Options } from './options.ts';
import { printProfiles } from './profile.ts';
import { findPython } from './python.ts';
import { tableOf } from './report/table.ts';
import type { Report, Result } from './result.ts';
import { ROWS } from './rows/rows.ts';

const options = optionsOrExit();
const report = options.from === undefined ? await measureAll() : await readReport(options.from);
if (options.writeDocs) {
  const { writeDocs } = await import('./report/write-docs.ts');
  await writeDocs(report);
}

async function measureAll(): Promise<Report> {
  const { rows, runs, profile, json } = options;
  const python = findPython() !== undefined;
  const machine = thisMachine();
  console.log(`${machine.cpu}, load ${machine.load.toFixed(1)}, ${runs} runs`);
  const results: Result[] = [];
  const profiling = profile && { onProfiles: printProfiles };
  for (const row of ROWS.filter(({ name }) => rows.includes(name))) {
    const { name, title, goals } = row;
    for await (const measured of row.measure({ ...options, python, ...profiling })) {
      const result = { row: name, title, goals, ...measured };
      results.push(result);
      console.log(tableOf(result));
      // Written after each result, so that an interrupted run keeps its figures.
      if (json !== undefined) await writeFile(json, toJson({ machine, runs, results }));
    }
  }
  return { machine, runs, results };
}

function toJson(value: Report): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

async function readReport(file: string): Promise<Report> {
  return JSON.parse(await readFile(file, 'utf8')) as Report;
}

function optionsOrExit(): Options {
  try {
    return readOptions(process.argv.slice(2));
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
    return process.exit(2);
  }
}
