import { type Command, InvalidArgumentError, Option } from 'commander';
import { A_MOMENT, type Moment, parseDuration, parseMoment } from '../domain/options.ts';
import { PROMPT_STATUSES, type Status } from '../domain/status.ts';

/** The options that several commands have, as commander passes them. A command has only those that it adds. */
export interface Options {
  readonly config?: string;
  readonly store?: string;
  readonly json?: true;
  readonly project?: string;
  readonly experiment?: string;
  /** The part of the history. */
  readonly since?: Moment;
  readonly until?: Moment;
  readonly prompt?: string;
  readonly status?: Status;
  readonly cause?: string;
  readonly limit?: number;
  readonly format?: string;
  readonly follow?: true;
}

/** `--config FILE`; src/config/environment.ts has the default. */
export function configOption(): Option {
  return new Option(
    '--config <file>',
    'configuration file (default: $EVALWATCH_CONFIG, else config/evalwatch.yaml)',
  );
}

export function jsonOption(): Option {
  return new Option('--json', 'print one JSON document instead of a table');
}

/** Adds `--config FILE` and `--store FILE`: where a command finds the store. */
export function addStoreOptions(command: Command): Command {
  return command
    .addOption(configOption())
    .addOption(
      new Option(
        '--store <file>',
        'read this SQLite store or backup, without a configuration',
      ).conflicts('config'),
    );
}

/** Adds the options that restrict the rows of a store to a project, an experiment and a time. */
export function addHistoryOptions(
  command: Command,
  since?: readonly [moment: Moment, text: string],
) {
  const sinceOption = new Option(
    '--since <time>',
    'only what happened since: 24h or 1h30m ago, or 2026-11-29T08:30Z',
  ).argParser(moment);
  if (since !== undefined) sinceOption.default(...since);
  return addStoreOptions(command)
    .addOption(new Option('--project <id>', 'only this project'))
    .addOption(new Option('--experiment <name>', "only this experiment; '' for none"))
    .addOption(sinceOption);
}

/** Adds the options that restrict the moves of a store, or its failures, to a part of the history and a prompt. */
export function addMoveOptions(command: Command): Command {
  return addHistoryOptions(command)
    .addOption(
      new Option('--until <time>', 'only what happened before, as for --since')
        .argParser(moment)
        .conflicts('follow'),
    )
    .addOption(promptOption());
}

/** `--prompt ID`. */
export function promptOption(): Option {
  return new Option('--prompt <id>', 'only this prompt');
}

function moment(text: string): Moment {
  const parsed = parseMoment(text);
  const isUsable = parsed && ('at' in parsed || Number.isSafeInteger(parsed.agoMs));
  if (isUsable) return parsed;
  throw new InvalidArgumentError(`It must be ${A_MOMENT}.`);
}

/** `--limit N`. */
export function limitOption(description: string): Option {
  return new Option('--limit <n>', description).argParser(positiveInteger);
}

/** `--status S`, in any case. */
export function statusOption(): Option {
  return new Option('--status <status>', 'only prompts in this status')
    .choices(PROMPT_STATUSES)
    .argParser((text) => {
      const status = PROMPT_STATUSES.find((each) => each === text.toUpperCase());
      if (status !== undefined) return status;
      throw new InvalidArgumentError(`It must be one of ${PROMPT_STATUSES.join(', ')}.`);
    });
}

/** Parses a duration to ms, with the grammar of the configuration, for an argument of commander. */
export function duration(text: string): number {
  const ms = parseDuration(text);
  if (ms !== undefined && Number.isSafeInteger(ms)) return ms;
  throw new InvalidArgumentError('It must be a duration such as 30m, 24h or 7d.');
}

/** Longer timers run at once. */
const MAX_INTERVAL_MS = 2 ** 31 - 1;

/** Parses the time between two repetitions to ms, for an argument of commander. */
export function interval(text: string): number {
  const ms = duration(text);
  if (ms >= 1 && ms <= MAX_INTERVAL_MS) return ms;
  throw new InvalidArgumentError('It must be from 1ms to 24d.');
}

/** Parses a whole number of 1 or more, for an argument of commander. */
export function positiveInteger(text: string): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= 1 && Number.isSafeInteger(number)) return number;
  throw new InvalidArgumentError('It must be a whole number, 1 or more.');
}
