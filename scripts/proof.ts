/**
 * Exposes the daemon and its store to faults (docs/reliability.md); `--help` explains how. Exits 1 if a guarantee is broken,
 * and 2 if an option is wrong.
 */
import { randomInt } from 'node:crypto';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CommanderError } from 'commander';
import { groupFile } from '../proof/messages-file.ts';
import { limitsOfFile } from '../proof/durations-file.ts';
import { noticeOf } from '../proof/bug.ts';
import { type Options, readOptions, type RowsTask, type SimulationTask } from '../proof/options.ts';
import { playUntil } from '../proof/simulation.ts';
import { whyUnavailable } from '../proof/row.ts';
import { environment, resolveFromUser } from '../src/config/environment.ts';

/** Drawn seeds are below this, so that they are easy to type. */
const MAX_DRAWN_SEED = 1_000_000;

const options = optionsOrExit();
if (options.kind === 'rows') await runRows(options);
else if (options.kind === 'durations') await printLimits(options.file);
else if (options.kind === 'messages') process.exit(await printGrouping(options.file, options.out));
else await simulate(options);

function optionsOrExit(): Options {
  try {
    return readOptions(process.argv.slice(2));
  } catch (error) {
    // Commander has printed the message.
    if (error instanceof CommanderError) return process.exit(error.exitCode === 0 ? 0 : 2);
    throw error;
  }
}

/** Prints the limits that are learned from the durations in a file. */
async function printLimits(file: string): Promise<void> {
  try {
    const path = resolveFromUser(file, environment());
    await pipeline(Readable.from(limitsOfFile(path)), process.stdout, { end: false });
  } catch (error) {
    // The reader, such as `head`, has closed the pipe.
    if (error instanceof Error && 'code' in error && error.code === 'EPIPE') return;
    console.error(`${file}: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
}

/** Simulates days of each part, and prints what they contained or what was found. */
async function simulate({ parts, days, seed = randomInt(MAX_DRAWN_SEED) }: SimulationTask) {
  for (const part of parts) {
    try {
      const figures = await playUntil(
        part,
        seed,
        (played) => played.days >= days,
        (line) => console.log(line),
      );
      for (const [figure, value] of figures) say(figure, value);
    } catch (error) {
      console.error(error instanceof Error ? error.message : String(error));
      process.exitCode = 1;
    }
  }
}

async function runRows({ rows, short, seed: given }: RowsTask): Promise<void> {
  const broken: string[] = [];
  const missing: string[] = [];
  for (const row of rows) {
    const seed = given ?? (row.drawsSeed === true ? randomInt(MAX_DRAWN_SEED) : 1);
    console.log(`${row.name}, seed ${seed}${short ? ', short' : ''}`);
    const started = performance.now();
    try {
      const figures = await row.run({ short, seed, print: (line) => console.log(`  … ${line}`) });
      for (const [figure, value] of figures) say(figure, value);
      for (const bug of [row.bug ?? []].flat()) {
        // A proof must also find the mistakes that it plants itself.
        const notice = await noticeOf(bug, (planted) =>
          row.run({ short: true, seed, print: () => {}, ...planted }),
        );
        say(`bug: ${bug.what}`, `noticed: ${notice.slice(0, 160)}`);
      }
    } catch (error) {
      try {
        missing.push(`${row.name}: ${whyUnavailable(error)}`);
      } catch {
        console.log('  FAILED', error);
        broken.push(row.name);
      }
    }
    say('took', `${Math.round((performance.now() - started) / 1000)} s`);
  }
  for (const why of missing) console.log(`NOT PROVED HERE: ${why}`);
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
