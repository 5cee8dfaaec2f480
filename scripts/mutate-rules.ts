/**
 * Makes small changes (mutants) to the alert rules, one by one, and runs the rule tests on each. A mutant that passes shows
 * a gap in the tests, or changes nothing (EQUIVALENT has the reason). Needs promtool. An argument selects the rules whose
 * name contains it. Exits 1 if a mutant passes that is not equivalent.
 */
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parse, stringify } from 'yaml';
import { EQUIVALENT } from './rule-mutations/equivalent.ts';
import { mutantsOf, type Mutant } from './rule-mutations/mutants.ts';

const run = promisify(execFile);
const source = join(import.meta.dirname, '../config/prometheus');
const directory = await mkdtemp(join(tmpdir(), 'evalwatch-mutants-'));
const rulesFile = join(directory, 'evalwatch.rules.yml');

async function passes(...args: readonly string[]): Promise<boolean> {
  try {
    await run('promtool', args);
    return true;
  } catch (error) {
    // Without promtool, the error must not count as a killed mutant.
    if (error instanceof Error && 'syscall' in error) throw error;
    return false;
  }
}

/** Keeps `0x4`, which is five zeros for promtool, from being read as the number 4. */
const AS_WRITTEN = { schema: 'failsafe' } as const;

/** Splits the test files into one file for each test, by name, because most mutants are found by one test. */
async function splitTests(): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>();
  for (const name of await readdir(source)) {
    if (!name.endsWith('.test.yml')) continue;
    const text = await readFile(join(source, name), 'utf8');
    const suite = parse(text, AS_WRITTEN) as { tests: readonly object[] };
    for (const [index, test] of suite.tests.entries()) {
      files.set(`${index}-${name}`, stringify({ ...suite, tests: [test] }, AS_WRITTEN));
    }
  }
  return files;
}

/** Sorts the tests that mention the rule to the front. */
function inOrder(tests: ReadonlyMap<string, string>, rule: string): readonly string[] {
  const mentions = (text: string) => text.split(rule).length;
  return [...tests].toSorted(([, a], [, b]) => mentions(b) - mentions(a)).map(([name]) => name);
}

async function survives(mutant: Mutant, tests: ReadonlyMap<string, string>): Promise<boolean> {
  for (const file of inOrder(tests, mutant.rule)) {
    if (!(await passes('test', 'rules', join(directory, file)))) return false;
  }
  return true;
}

try {
  await cp(source, directory, { recursive: true });
  const tests = await splitTests();
  for (const [name, text] of tests) await writeFile(join(directory, name), text);
  const original = await readFile(rulesFile, 'utf8');
  if (!(await survives({ rule: '', change: '', text: original }, tests))) {
    throw new Error('the unchanged rules do not pass their tests');
  }
  const counts = { killed: 0, invalid: 0, equivalent: 0, lived: 0 };
  const wanted = mutantsOf(original).filter(({ rule }) => rule.includes(process.argv[2] ?? ''));
  for (const mutant of wanted) {
    await writeFile(rulesFile, mutant.text);
    if (!(await passes('check', 'rules', rulesFile))) {
      counts.invalid += 1;
    } else if (!(await survives(mutant, tests))) {
      counts.killed += 1;
    } else {
      const reason = EQUIVALENT.find(
        ({ rule, change }) => rule.test(mutant.rule) && change.test(mutant.change),
      )?.why;
      counts[reason === undefined ? 'lived' : 'equivalent'] += 1;
      console.log(`${mutant.rule}: ${mutant.change}\n  ${reason ?? 'LIVED'}`);
    }
  }
  console.log(
    `${wanted.length} mutants: ${Object.entries(counts)
      .map(([outcome, count]) => `${count} ${outcome}`)
      .join(', ')}`,
  );
  process.exitCode = counts.lived === 0 ? 0 : 1;
} finally {
  await rm(directory, { recursive: true, force: true });
}
