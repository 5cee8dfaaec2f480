/**
 * Exposes the daemon and its store to faults and compares the result with the guarantees (docs/reliability.md):
 * `node scripts/proof.ts [row …] [--short] [--seed N]`. Exits 1 if a guarantee is broken. `simulation` draws its seed if there is
 * none.
 * `node scripts/proof.ts simulation --part daemon|workers|server [--seed N]` with
 * - `--days N [--projects N]` simulates seed after seed for so many days, with so many projects (20);
 * - `--repeat N` simulates N seeds twice, and compares their traces;
 * - `--searches N [--mistake TEXT]` (not `server`) searches N times for each planted mistake, or for those with this text.
 * `node scripts/proof.ts limits --durations FILE` prints the limits that are learned from the durations in a CSV file.
 * `node scripts/proof.ts causes --messages FILE [--out FILE]` groups the messages of a file.
 */
import { randomInt } from 'node:crypto';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { parseArgs } from 'node:util';
import { limitsOfFile } from '../proof/limits/durations-file.ts';
import { noticeOf } from '../proof/bug.ts';
import { groupFile } from '../proof/causes/messages-file.ts';
import { ROWS } from '../proof/rows.ts';
import { rates } from '../proof/simulation/rates.ts';
import { repeat } from '../proof/simulation/repeat.ts';
import { MAX_PROJECTS, type Part, type PartFromSeed, PARTS } from '../proof/simulation/scenario.ts';
import { search } from '../proof/simulation/search.ts';
import { environment, resolveFromUser } from '../src/config/environment.ts';

/** Seeds that are drawn are below, and easy to type. */
const MAX_DRAWN_SEED = 1_000_000;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    short: { type: 'boolean', default: false },
    seed: { type: 'string' },
    part: { type: 'string' },
    days: { type: 'string' },
    projects: { type: 'string' },
    repeat: { type: 'string' },
    searches: { type: 'string' },
    mistake: { type: 'string' },
    durations: { type: 'string' },
    messages: { type: 'string' },
    out: { type: 'string' },
  },
});
const { short, durations, messages, out } = values;
const givenSeed = values.seed === undefined ? undefined : Number(values.seed);
const part = PARTS.find((one) => one === values.part);
const projects = values.projects === undefined ? MAX_PROJECTS : Number(values.projects);
/** What can be done with one part of the simulation, by the option that says how often. */
const DEEDS = {
  days: (count: number, from: PartFromSeed) => search({ ...from, days: count, projects }),
  repeat: (count: number, from: PartFromSeed) => repeat({ ...from, seeds: count }),
  searches: (count: number, from: PartFromSeed) => {
    const { mistake = '' } = values;
    return rates({ ...from, searches: count, mistake });
  },
};
const asked = (['days', 'repeat', 'searches'] as const).filter((name) => name in values);
const [deed = 'days'] = asked;
const count = Number(values[deed]);
const names = ROWS.map(({ name }) => name);
const rows = positionals.join(' ');
const isCount = count > 0 && (deed === 'days' || Number.isSafeInteger(count));
const isUsable =
  positionals.every((name) => names.includes(name)) &&
  (givenSeed === undefined || Number.isSafeInteger(givenSeed)) &&
  (values.part === undefined && asked.length === 0
    ? true
    : rows === 'simulation' && part !== undefined && isCount && asked.length === 1) &&
  (values.mistake === undefined || deed === 'searches') &&
  (values.projects === undefined || asked.includes('days')) &&
  Number.isSafeInteger(projects) &&
  projects > 0 &&
  projects <= MAX_PROJECTS &&
  (deed !== 'searches' || part !== 'server') &&
  (durations === undefined || rows === 'limits') &&
  ((messages === undefined && out === undefined) || (messages !== undefined && rows === 'causes'));
if (!isUsable) {
  console.error(`usage: proof.ts [${names.join('|')} …] [--short] [--seed N]
       proof.ts simulation --part ${PARTS.join('|')} --days N [--projects N] [--seed N]
       proof.ts simulation --part ${PARTS.join('|')} --repeat N [--seed N]
       proof.ts simulation --part daemon|workers --searches N [--mistake TEXT] [--seed N]
       proof.ts limits --durations FILE
       proof.ts causes --messages FILE [--out FILE]`);
  process.exit(2);
}
if (durations !== undefined) await printLimits(durations);
else if (messages !== undefined) process.exit(await printGrouping(messages, out));
else if (part !== undefined) await simulate(part);
else await runRows();

/** Prints the limits that are learned from the durations in a file. */
async function printLimits(file: string): Promise<void> {
  try {
    const path = resolveFromUser(file, environment());
    await pipeline(Readable.from(limitsOfFile(path)), process.stdout, { end: false });
  } catch (error) {
    // The reader, such as `head`, has seen enough.
    if (error instanceof Error && 'code' in error && error.code === 'EPIPE') return;
    console.error(`${file}: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
}

/** Simulates a part as often as asked. */
async function simulate(simulated: Part): Promise<void> {
  const seed = givenSeed ?? randomInt(MAX_DRAWN_SEED);
  const print = (line: string) => console.log(line);
  try {
    const wrong = await DEEDS[deed](count, { part: simulated, seed, print });
    process.exitCode = wrong === 0 ? 0 : 1;
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    process.exitCode = 1;
  }
}

/** Runs the rows and prints their figures. */
async function runRows(): Promise<void> {
  const broken: string[] = [];
  for (const row of ROWS) {
    if (positionals.length > 0 && !positionals.includes(row.name)) continue;
    const seed = givenSeed ?? (row.drawsSeed === true ? randomInt(MAX_DRAWN_SEED) : 1);
    console.log(`${row.name}, seed ${seed}${short ? ', short' : ''}`);
    const started = performance.now();
    try {
      const figures = await row.run({ short, seed, print: (line) => console.log(`  … ${line}`) });
      for (const [figure, value] of figures) say(figure, value);
      if (figures.some((texts) => texts.some((text) => text.startsWith('FAILED')))) {
        broken.push(row.name);
      }
      for (const bug of [row.bug ?? []].flat()) {
        // A proof must also find the mistakes that it plants itself.
        const notice = await noticeOf(bug, (options) =>
          row.run({ short: true, seed, print: () => {}, ...options }),
        );
        say(`bug: ${bug.what}`, `noticed: ${notice.slice(0, 160)}`);
      }
    } catch (error) {
      console.log('  FAILED', error);
      broken.push(row.name);
    }
    say('took', `${Math.round((performance.now() - started) / 1000)} s`);
  }
  console.log(broken.length === 0 ? 'every guarantee held' : `broken: ${broken.join(', ')}`);
  process.exitCode = broken.length === 0 ? 0 : 1;
}

function say(figure: string, value: string): void {
  console.log(`  ${figure.padEnd(48)} ${value}`);
}

/** Groups the messages of a file and prints the score. Returns the exit code. */
async function printGrouping(file: string, outFile: string | undefined): Promise<number> {
  const resolve = (path: string): string => resolveFromUser(path, environment());
  try {
    console.log(
      await groupFile(resolve(file), outFile === undefined ? undefined : resolve(outFile)),
    );
    return 0;
  } catch (error) {
    console.error(`${file}: ${error instanceof Error ? error.message : String(error)}`);
    return 1;
  }
}
