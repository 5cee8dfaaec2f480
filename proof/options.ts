import { Argument, Command, InvalidArgumentError, Option } from 'commander';
import { positiveInteger } from '../src/cli/options.ts';
import type { Row } from './row.ts';
import { ROWS } from './rows.ts';
import { MAX_PROJECTS, type Part, PARTS } from './simulation/scenario.ts';

/** What `npm run proof` is asked for: rows, or one of the tasks `days` to `messages`. */
export interface Options {
  readonly rows: readonly Row[];
  readonly short: boolean;
  readonly seed?: number;
  /** The part of the simulation that `days`, `repeat` or `searches` is about; absent without them. */
  readonly part?: Part;
  readonly days?: number;
  readonly repeat?: number;
  readonly searches?: number;
  readonly projects: number;
  /** Text of the planted mistakes to search for. Every one has the empty text. */
  readonly mistake: string;
  /** Path of a CSV file. */
  readonly durations?: string;
  /** Path of a file of JSON lines, and of the file for their groups. */
  readonly messages?: string;
  readonly out?: string;
}

type Given = Omit<Options, 'rows' | 'projects' | 'mistake'> &
  Partial<Pick<Options, 'projects' | 'mistake'>>;

/** The options that say what to do in place of running rows, with the row that each belongs to. */
const TASKS = {
  days: 'simulation',
  repeat: 'simulation',
  searches: 'simulation',
  durations: 'limits',
  messages: 'causes',
} as const;
type Task = keyof typeof TASKS;
const isTask = (name: string): name is Task => name in TASKS;
/** The options that need one of these tasks. */
const NEEDS: Readonly<Record<string, readonly Task[]>> = {
  part: ['days', 'repeat', 'searches'],
  projects: ['days'],
  mistake: ['searches'],
  out: ['messages'],
};

/**
 * Reads what `npm run proof` is asked for.
 * @throws {CommanderError} after it has printed what is wrong, or the help that was asked for (exit code 0)
 */
export function readOptions(args: readonly string[]): Options {
  const command = createCommand().exitOverride().parse(args, { from: 'user' });
  const given = command.opts<Given>();
  const names = command.args;
  const wrong = findWrong(given, names);
  if (wrong !== undefined) command.error(`error: ${wrong}`, { exitCode: 1 });
  return {
    ...given,
    rows: names.length === 0 ? ROWS : ROWS.filter(({ name }) => names.includes(name)),
    projects: given.projects ?? MAX_PROJECTS,
    mistake: given.mistake ?? '',
  };
}

function createCommand(): Command {
  return new Command('npm run proof --')
    .description('Exposes evalwatch to faults and compares the result with its guarantees.')
    .addArgument(
      new Argument('[row...]', 'what to prove; without it, everything').choices(
        ROWS.map(({ name }) => name),
      ),
    )
    .option('--short', 'few rounds', false)
    .option('--seed <number>', 'makes the same faults again', wholeNumber)
    .addOption(new Option('--part <name>', 'part of the simulation').choices(PARTS))
    .option('--days <number>', 'simulation: simulates a part for so many days', positive)
    .option(
      '--projects <number>',
      `with --days: number of projects (default: ${MAX_PROJECTS})`,
      projectCount,
    )
    .option(
      '--repeat <number>',
      'simulation: simulates so many seeds of a part twice and compares their traces',
      positiveInteger,
    )
    .option(
      '--searches <number>',
      'simulation: searches so many times for each planted mistake of a part',
      positiveInteger,
    )
    .option('--mistake <text>', 'with --searches: only mistakes with this text')
    .option('--durations <file>', 'limits: prints the limits learned from durations in a CSV file')
    .option('--messages <file>', 'causes: groups messages and prints the score')
    .option('--out <file>', 'with --messages: writes the groups')
    .showHelpAfterError('(--help lists rows and options)');
}

/** Returns what is wrong with options that do not fit each other. */
function findWrong(given: Given, names: readonly string[]): string | undefined {
  const tasks = Object.keys(given).filter(isTask);
  const [task, second] = tasks;
  if (task !== undefined && second !== undefined)
    return `--${task} and --${second} exclude each other`;
  for (const [option, needed] of Object.entries(NEEDS)) {
    if (option in given && needed.every((one) => one !== task)) {
      return `--${option} needs ${needed.map((one) => `--${one}`).join(' or ')}`;
    }
  }
  if (task === undefined) return undefined;
  const row = TASKS[task];
  if (names.join(' ') !== row) return `--${task} needs the row ${row}, and no other`;
  if (given.short) return `--short is not for --${task}`;
  if (row === 'simulation' && given.part === undefined) return `--${task} needs --part`;
  if (row !== 'simulation' && given.seed !== undefined) return `--seed is not for --${task}`;
  // The mistakes in statements are planted in the model.
  if (task === 'searches' && given.part === 'server') return '--searches is not for --part server';
  return undefined;
}

function wholeNumber(text: string): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(number)) return number;
  throw new InvalidArgumentError('It must be a whole number.');
}

function positive(text: string): number {
  const number = Number(text);
  if (number > 0 && Number.isFinite(number)) return number;
  throw new InvalidArgumentError('It must be a number above 0.');
}

function projectCount(text: string): number {
  const number = positiveInteger(text);
  if (number <= MAX_PROJECTS) return number;
  throw new InvalidArgumentError(`It must be at most ${MAX_PROJECTS}.`);
}
