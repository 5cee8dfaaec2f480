import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net';
import { Command, CommanderError, type OutputConfiguration } from 'commander';
import { systemClock } from '../app/clock.ts';
import { version } from '../app/process.ts';
import { ConfigError } from '../config/config.ts';
import {
  allowsColor,
  commandThroughNpm,
  environment,
  readVariable,
} from '../config/environment.ts';
import { visible } from '../domain/visible.ts';
import { isBug } from '../monitor/errors.ts';
import { type Context, type Define, type Run, type Signals, UsageError } from './command.ts';
import { createOutput, type OutputStream, ReaderGoneError } from './output.ts';
import { truncate } from './table.ts';

/** The commands in the order of the help text. A command is loaded when it is called. */
const COMMANDS: Readonly<
  Record<string, readonly [description: string, load: () => Promise<Define>]>
> = {
  init: [
    'Write a configuration file with every option, its default and a comment',
    async () => (await import('./commands/init.ts')).defineInit,
  ],
  run: [
    'Run the daemon: poll the configured projects until a signal stops it',
    async () => (await import('./commands/run.ts')).defineRun,
  ],
  check: [
    'Validate the configuration and print the schedule and expectations of each project, and the receivers',
    async () => (await import('./commands/check.ts')).defineCheck,
  ],
  poll: [
    'Poll each project once, or only one of them, and log failed prompts',
    async () => (await import('./commands/poll.ts')).definePoll,
  ],
  notify: [
    'Send messages to receivers of the configuration',
    async () => (await import('./commands/notify.ts')).defineNotify,
  ],
  projects: [
    'Print whether each project is polled, its prompts by status and its failures of the last 24 hours',
    async () => (await import('./commands/projects.ts')).defineProjects,
  ],
  status: [
    'Print the status of each prompt that is not gone, newest change first',
    async () => (await import('./commands/status.ts')).defineStatus,
  ],
  transitions: [
    'Print the status changes of prompts and datasets, newest first',
    async () => (await import('./commands/transitions.ts')).defineTransitions,
  ],
  failures: [
    'Print each failure of a prompt with its error_info, newest first',
    async () => (await import('./commands/failures.ts')).defineFailures,
  ],
  causes: [
    'Print the causes of failures, most frequent first',
    async () => (await import('./commands/causes.ts')).defineCauses,
  ],
  experiments: [
    'Print the experiments of each project with their prompts by status, last move first',
    async () => (await import('./commands/experiments.ts')).defineExperiments,
  ],
  wait: [
    'Wait until experiments have finished, by the API of a running daemon',
    async () => (await import('./commands/wait.ts')).defineWait,
  ],
  export: [
    'Print all status changes of prompts and datasets for other programs, oldest first',
    async () => (await import('./commands/export.ts')).defineExport,
  ],
  backup: [
    'Copy the store to a file, also while the daemon runs',
    async () => (await import('./commands/store.ts')).defineBackup,
  ],
  store: ['Maintain the store', async () => (await import('./commands/store.ts')).defineStore],
  'migrate-store': [
    'Copy a SQLite store into the empty PostgreSQL database of the configuration',
    async () => (await import('./commands/migrate-store.ts')).defineMigrateStore,
  ],
  simulate: [
    'Run a simulated Evaluation Service whose prompts change by themselves',
    async () => (await import('./commands/simulate.ts')).defineSimulate,
  ],
  demo: [
    'Run a demonstration: a simulated service and a daemon that watches it',
    async () => (await import('./commands/demo.ts')).defineDemo,
  ],
};

/** What evalwatch no longer has, and what to do instead. */
const DROPPED: readonly (readonly [
  command: string,
  option: string | undefined,
  instead: string,
])[] = [
  ['completion', undefined, '`evalwatch --help` lists the commands'],
  ['status', '--watch', 'run `watch evalwatch status`'],
  ['export', '--output', 'redirect stdout, as in `evalwatch export > moves.ndjson`'],
  ['export', '--force', 'redirect stdout, as in `evalwatch export > moves.ndjson`'],
  [
    'simulate',
    '--faults',
    'to see polls fail, stop it, or put a proxy such as Toxiproxy before it',
  ],
];

/**
 * Time that each address of a name but the last has to connect; Node's 250 ms end every connection with a longer round
 * trip. One lost packet, which is sent again after a second, fits in, and so does a second address in the 3 s of PostgreSQL.
 */
const ADDRESS_TIMEOUT_MS = 1500;

/**
 * Runs one command line (without the two words for Node and the script) and resolves to its exit code
 * (docs/specification.md#exit-codes). Never rejects.
 */
export async function main(
  argv: readonly string[],
  io: { readonly stdout: OutputStream; readonly stderr: OutputStream },
  signals: Signals,
): Promise<number> {
  setDefaultAutoSelectFamilyAttemptTimeout(ADDRESS_TIMEOUT_MS);
  const env = environment();
  const stdout = createOutput(io.stdout, allowsColor(env, io.stdout));
  const stderr = createOutput(io.stderr, false);
  // A failed write to stderr cannot be reported anywhere.
  const tell = (text: string) => void stderr.write(text).catch(() => {});
  const warn = (line: string) => tell(`${visible(line)}\n`);
  const progress = (text: string): void => {
    const { width } = stderr;
    if (width !== undefined) tell(`\r\u001b[2K${truncate(visible(text), width - 1)}`);
  };
  const context: Context = { stdout, warn, progress, env, clock: systemClock, signals };
  let exitCode = 0;
  let help = '';
  const run: Run =
    (action) =>
    async (...given) => {
      exitCode = await action(context, ...given);
    };

  try {
    const words = argv[0] === 'help' ? argv.slice(1) : argv;
    assertNotDropped(words);
    const program = await createProgram(run, words[0], {
      writeOut: (text) => {
        help += text;
      },
      writeErr: (text) => {
        for (const line of text.trimEnd().split('\n')) warn(line);
      },
    });
    assertNpmTookNoOption(program, argv);
    // commander's own `help` reads only one word, and ignores an unknown one.
    const isHelp = words !== argv && words.length > 0 && findCommand(program, words).isWhole;
    await program.parseAsync(isHelp ? [...words, '--help'] : words, { from: 'user' });
  } catch (error) {
    const outcome = toOutcome(error);
    for (const line of outcome.lines) warn(line);
    exitCode = outcome.exitCode;
  }
  // It is not an error if the reader closes the pipe before it has read the help.
  await stdout.write(help).catch(() => {});
  return exitCode;
}

/**
 * Creates the parser of the command line. It throws where commander would end the process. If `only` is the name of a
 * command, the others have no options.
 */
export async function createProgram(
  run: Run,
  only: string | undefined,
  output: OutputConfiguration = {},
): Promise<Command> {
  const program = new Command('evalwatch')
    .description(
      'Polls an Evaluation Service and tells which prompts failed, when and why: by messages, logs, Prometheus metrics and alerts, and a status page',
    )
    .version(version)
    .configureOutput(output)
    .exitOverride();
  const isOne = only !== undefined && Object.hasOwn(COMMANDS, only);
  for (const [name, [description, load]] of Object.entries(COMMANDS)) {
    const command = program.command(name).description(description);
    if (!isOne || name === only) (await load())(command, run);
  }
  return program;
}

/** Finds the command that these words name, and whether all of them do. */
function findCommand(program: Command, words: readonly string[]) {
  let command = program;
  for (const [depth, word] of words.entries()) {
    const next = command.commands.find((each) => each.name() === word);
    if (next === undefined) return { command, path: words.slice(0, depth), isWhole: false };
    command = next;
  }
  return { command, path: words, isWhole: true };
}

/** @throws {UsageError} */
function assertNotDropped(words: readonly string[]): void {
  for (const [command, option, instead] of DROPPED) {
    const isGiven = (word: string) => word === option || word.startsWith(`${option}=`);
    if (words[0] !== command || !(option === undefined || words.some(isGiven))) continue;
    const what =
      option === undefined ? `evalwatch has no ${command}` : `${command} has no ${option}`;
    throw new UsageError(`${what} any more: ${instead}`);
  }
}

/**
 * Refuses a command line without the `--` that npm needs before the options of a command: npm has then taken them for its own,
 * has set a variable for each, and has passed on the other words only.
 * @throws {UsageError}
 */
function assertNpmTookNoOption(program: Command, words: readonly string[]): void {
  const env = environment();
  const name = commandThroughNpm(env);
  // An option that npm has passed on came after `--`: the variables are then from elsewhere, such as `json=true` in .npmrc.
  if (name === undefined || words.some((word) => word.startsWith('-'))) return;
  const { command, path } = findCommand(program, words);
  const taken = command.options.filter(({ long }) => {
    const variable = `npm_config_${long?.slice(2).replaceAll('-', '_')}`;
    return readVariable(env, variable) !== undefined;
  });
  if (taken.length === 0) return;
  const options = taken.map(({ long }) => long).join(' and ');
  const repeated = [name, ...path, ...taken.map(({ flags }) => flags)].join(' ');
  throw new UsageError(
    `npm has taken ${options} for itself, because -- is missing before the command: ${repeated}`,
  );
}

/** Exit code of a failed command (docs/specification.md#exit-codes), and lines for stderr. */
interface Outcome {
  readonly exitCode: 0 | 1 | 2;
  readonly lines: readonly string[];
}

export function toOutcome(error: unknown): Outcome {
  if (error instanceof ReaderGoneError) return { exitCode: 0, lines: [] };
  // Commander has written its text already. Its exit code is 0 for --help and --version.
  if (error instanceof CommanderError) return { exitCode: error.exitCode === 0 ? 0 : 2, lines: [] };
  if (error instanceof UsageError) return { exitCode: 2, lines: [`error: ${error.message}`] };
  if (error instanceof ConfigError) return { exitCode: 2, lines: error.message.split('\n') };
  if (error instanceof Error && !isBug(error)) {
    return { exitCode: 1, lines: [`error: ${error.message}`] };
  }
  return {
    exitCode: 1,
    lines: [`error: unexpected, please report it with the command that you ran: ${String(error)}`],
  };
}
