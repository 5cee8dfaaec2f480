/**
 * Exposes the daemon and its store to faults (docs/reliability.md); `--help` explains how. Exits 1 if a guarantee is broken,
 * and 2 if an option is wrong.
 */
import { execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Argument, Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { noticeOf } from '../proof/bug.ts';
import { limitsOfFile } from '../proof/durations-file.ts';
import { groupFile } from '../proof/messages-file.ts';
import { type Row, Unavailable } from '../proof/row.ts';
import { ROWS, rowsThatJudge } from '../proof/rows.ts';
import { PARTS } from '../proof/simulation/scenario.ts';
import { environment, resolveFromUser } from '../src/config/environment.ts';

/** Drawn seeds are below this, so that they are easy to type. */
const MAX_DRAWN_SEED = 1_000_000;

interface Options {
  readonly short?: boolean;
  readonly changed?: string;
  readonly seed?: number;
  readonly part?: string;
  readonly days?: number;
}

const program = new Command('npm run proof --')
  .description(
    'Expose evalwatch to faults and compare the result with its guarantees. Each row also runs with deliberate mistakes, which it must notice.',
  )
  .exitOverride()
  .showHelpAfterError('(npm run proof -- --help lists rows and options)')
  .enablePositionalOptions()
  .addArgument(
    new Argument('[row...]', 'what to prove; by default everything').choices(
      ROWS.map(({ name }) => name),
    ),
  )
  .option('--short', 'run few rounds')
  .option('--changed <commit>', 'run the short form of the rows whose subject changed since then')
  .option(
    '--seed <n>',
    'seed of the random choices (default: 1; simulation draws one)',
    wholeNumber,
  )
  .addOption(new Option('--part <name>', 'only this part of the simulation').choices(PARTS))
  .option('--days <n>', 'simulate this many days, without mistakes', positiveNumber)
  .action(run);
program
  .command('causes')
  .description('group the messages of a file by their cause, and print the score')
  .requiredOption(
    '--messages <file>',
    'JSON objects with template, error_id, error_msg; one a line',
  )
  .option('--out <file>', 'write the cause and the shape of each message here')
  .action(({ messages, out }: { readonly messages: string; readonly out?: string }) =>
    orTell(messages, async () => {
      console.log(await groupFile(resolve(messages), out === undefined ? out : resolve(out)));
    }),
  );
program
  .command('limits')
  .description('print the limits that are learned from the durations in a file')
  .requiredOption('--durations <file>', 'CSV: project,status,ended_at,seconds; sorted by ended_at')
  .action(({ durations }: { readonly durations: string }) =>
    orTell(durations, async () => {
      const lines = Readable.from(limitsOfFile(resolve(durations)));
      await pipeline(lines, process.stdout, { end: false });
    }),
  );

try {
  await program.parseAsync();
} catch (error) {
  if (!(error instanceof CommanderError)) throw error;
  // Commander has printed the message, or help.
  process.exitCode = error.exitCode === 0 ? 0 : 2;
}

async function run(names: readonly string[], options: Options, command: Command): Promise<void> {
  const { changed, part, days } = options;
  if ((part ?? days) !== undefined && names.join(' ') !== 'simulation') {
    command.error('error: --part and --days work only with the row simulation');
  }
  let rows = names.length === 0 ? ROWS : ROWS.filter(({ name }) => names.includes(name));
  if (changed !== undefined) {
    const git = ['diff', '--name-only', '--merge-base', changed];
    const files = execFileSync('git', git, { cwd: import.meta.dirname, encoding: 'utf8' })
      .trim()
      .split('\n');
    rows = rowsThatJudge(files).filter((row) => rows.includes(row));
  }
  const missing: string[] = [];
  const broken: string[] = [];
  for (const row of rows) {
    const started = performance.now();
    try {
      await prove(row, { ...options, short: options.short === true || changed !== undefined });
    } catch (error) {
      if (error instanceof Unavailable) {
        missing.push(`NOT PROVED HERE: ${row.name}: ${error.message}`);
      } else {
        broken.push(row.name);
        console.log('  FAILED', error);
      }
    }
    say('took', `${Math.round((performance.now() - started) / 1000)} s`);
  }
  for (const why of missing) console.log(why);
  const held = rows.length - missing.length - broken.length;
  console.log(
    `${held} of ${rows.length} rows held${broken.length > 0 ? `; broken: ${broken.join(', ')}` : ''}`,
  );
  process.exitCode = broken.length === 0 ? 0 : 1;
}

/** Runs a row, and each of its mistakes. @throws if a guarantee is broken, or a mistake is not noticed */
async function prove(
  row: Row,
  { short, seed: given, part, days }: Options & { readonly short: boolean },
): Promise<void> {
  const seed = given ?? (row.drawsSeed === true ? randomInt(MAX_DRAWN_SEED) : 1);
  console.log(`${row.name}, seed ${seed}${short ? ', short' : ''}`);
  const print = (line: string) => console.log(`  … ${line}`);
  const figures = await row.run({ short, seed, print, part, days });
  for (const [figure, value] of figures) say(figure, value);
  for (const bug of [row.bug ?? []].flat()) {
    const notice = await noticeOf(bug, (planted) =>
      row.run({ short: true, seed, print: () => {}, ...planted }),
    );
    say(`bug: ${bug.what}`, `noticed: ${notice.slice(0, 160)}`);
  }
}

function say(figure: string, value: string): void {
  console.log(`  ${figure.padEnd(48)} ${value}`);
}

/** Returns a path as the user means it, from the directory in which npm was called. */
function resolve(file: string): string {
  return resolveFromUser(file, environment());
}

/** Runs `work`, and prints what is wrong with the file. */
async function orTell(file: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    // The reader, such as `head`, has closed the pipe.
    if (error instanceof Error && 'code' in error && error.code === 'EPIPE') return;
    console.error(`${file}: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
}

function wholeNumber(text: string): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(number)) return number;
  throw new InvalidArgumentError('It must be a whole number, 0 or more.');
}

function positiveNumber(text: string): number {
  const number = Number(text);
  if (number > 0) return number;
  throw new InvalidArgumentError('It must be a number above 0.');
}
