import { Argument, Command, InvalidArgumentError, Option } from 'commander';
import type { Row } from './row.ts';
import { ROWS } from './rows.ts';
import { type Part, PARTS } from './simulation/scenario.ts';

/** Rows to run, or one task in place of them. */
export type Options =
  | RowsTask
  | SimulationTask
  | { readonly kind: 'durations'; readonly file: string }
  | { readonly kind: 'messages'; readonly file: string; readonly out: string | undefined };

export interface RowsTask {
  readonly kind: 'rows';
  readonly rows: readonly Row[];
  readonly short: boolean;
  readonly seed: number | undefined;
}

/** Days of some parts of the simulation. Without a seed, one is drawn. */
export interface SimulationTask {
  readonly kind: 'days';
  readonly parts: readonly Part[];
  readonly days: number;
  readonly seed: number | undefined;
}

/** The options as commander returns them. */
interface Given {
  readonly short?: true;
  readonly seed?: number;
  readonly part?: Part;
  readonly days?: number;
  readonly durations?: string;
  readonly messages?: string;
  readonly out?: string;
}

/** Options that work only with another one, or with one of several. */
const NEEDS: Partial<Record<keyof Given, readonly (keyof Given)[]>> = {
  part: ['days'],
  out: ['messages'],
};

/** Options that work only with one row. */
const ROW_OF: Partial<Record<keyof Given, string>> = {
  days: 'simulation',
  durations: 'limits',
  messages: 'causes',
};

const FORMS = `
Forms:
  npm run proof -- [row...] [--short] [--seed N]
  npm run proof -- simulation --days N [--part daemon|workers] [--seed N]
  npm run proof -- limits --durations FILE
  npm run proof -- causes --messages FILE [--out FILE]

docs/reliability.md describes the rows, docs/simulation.md the simulation.`;

/**
 * Parses the command line of `npm run proof`.
 * @throws {CommanderError} after commander has printed what is wrong, or help (exit code 0)
 */
export function readOptions(args: readonly string[]): Options {
  const command = createCommand().exitOverride().parse(args, { from: 'user' });
  const given = command.opts<Given>();
  const wrong = findWrong(given, command.args);
  if (wrong !== undefined) command.error(`error: ${wrong}`);
  const { short = false, seed, part, days, durations, messages, out } = given;
  if (days !== undefined) {
    return { kind: 'days', parts: part === undefined ? PARTS : [part], days, seed };
  }
  if (durations !== undefined) return { kind: 'durations', file: durations };
  if (messages !== undefined) return { kind: 'messages', file: messages, out };
  const { args: names } = command;
  const rows = names.length === 0 ? ROWS : ROWS.filter(({ name }) => names.includes(name));
  return { kind: 'rows', rows, short, seed };
}

function createCommand(): Command {
  const rows = ROWS.map(({ name }) => name);
  const command = new Command('npm run proof --')
    .description('Expose evalwatch to faults and compare the result with its guarantees.')
    .addArgument(
      new Argument('[row...]', 'what to prove; by default everything').choices([
        ...rows,
        'causes',
        'limits',
      ]),
    )
    .option('--short', 'run few rounds')
    .option(
      '--seed <n>',
      'seed of the random choices (default: 1; simulation draws one)',
      wholeNumber,
    )
    .addOption(new Option('--part <name>', 'part of the simulation').choices(PARTS))
    .option('--out <file>', 'write the groups of messages here', fileName);
  const tasks = [
    new Option('--days <n>', 'simulate this many days, and plant no mistakes').argParser(
      positiveNumber,
    ),
    new Option('--durations <file>', 'print the limits learned from a CSV file of durations')
      .argParser(fileName)
      .conflicts('seed'),
    new Option('--messages <file>', 'group the messages of a file, and print the score')
      .argParser(fileName)
      .conflicts('seed'),
  ];
  const names = tasks.map((task) => task.attributeName());
  for (const task of tasks) {
    const others = names.filter((name) => name !== task.attributeName());
    command.addOption(task.conflicts(['short', ...others]));
  }
  return command
    .addHelpText('after', FORMS)
    .showHelpAfterError('(npm run proof -- --help lists rows and options)');
}

/** Returns what is wrong with options that do not fit the rows or each other. */
function findWrong(given: Given, names: readonly string[]): string | undefined {
  for (const option of Object.keys(given) as (keyof Given)[]) {
    const needed = NEEDS[option];
    if (needed?.every((one) => given[one] === undefined) === true) {
      const listed = needed.map((one) => `--${one}`).join(', ');
      return `--${option} needs ${needed.length > 1 ? 'one of ' : ''}${listed}`;
    }
    const row = ROW_OF[option];
    if (row !== undefined && names.join(' ') !== row) {
      return `--${option} works only with the row ${row}: npm run proof -- ${row} --${option} …`;
    }
  }
  for (const [name, option] of [
    ['causes', 'messages'],
    ['limits', 'durations'],
  ] as const) {
    if (names.includes(name) && given[option] === undefined) return `${name} needs --${option}`;
  }
  return undefined;
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

/** Commander takes the next word, even if it is an option. */
function fileName(text: string): string {
  if (!text.startsWith('-')) return text;
  throw new InvalidArgumentError(
    'It must be a file name: write ./ before one that begins with a dash.',
  );
}
