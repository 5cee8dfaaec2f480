import { type Command, InvalidArgumentError, Option } from 'commander';
import { parseDuration, suggestDuration } from '../domain/duration.ts';
import { didYouMean } from '../config/suggest.ts';
import { PROMPT_STATUSES, type Status } from '../domain/status.ts';

/** `--config FILE`; src/config/environment.ts has the default. */
export function configOption(): Option {
  return new Option(
    '--config <file>',
    'configuration file (default: $EVALWATCH_CONFIG, else config/evalwatch.yaml)',
  );
}

export interface ConfigOption {
  readonly config?: string;
}

/** `--config FILE` or `--store FILE`: where a command finds the store. */
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

export interface StoreOptions extends ConfigOption {
  readonly store?: string;
}

export function jsonOption(): Option {
  return new Option('--json', 'print one JSON document instead of a table');
}

/** `--format csv` of a command that prints a table without it. */
export function csvOption(): Option {
  return new Option('--format <format>', 'print CSV instead of a table')
    .choices(['csv'])
    .conflicts('json');
}

export interface JsonOption {
  readonly json?: true;
}

/** The options that restrict rows to a project and a time, as commander passes them. */
export interface HistoryOptions extends StoreOptions {
  readonly project?: string;
  /** Length of the history before now, ms. */
  readonly since?: number;
}

/** The options of the commands that print rows of the store, as commander passes them. */
export interface QueryOptions extends HistoryOptions, JsonOption {
  readonly status?: Status;
  readonly cause?: string;
  readonly limit?: number;
  readonly format?: 'csv';
}

/** Adds the options that restrict rows to a project and a time. */
export function addHistoryOptions(command: Command): Command {
  return addStoreOptions(command).addOption(projectOption()).addOption(sinceOption());
}

export function projectOption(): Option {
  return new Option('--project <id>', 'only this project');
}

/** `--since D`, in ms. */
export function sinceOption(): Option {
  return new Option(
    '--since <duration>',
    'only the last part of the history, such as 24h or 1h30m',
  ).argParser(duration);
}

export function limitOption(description: string): Option {
  return new Option('--limit <n>', description).argParser(positiveInteger);
}

/** Adds the options of the commands that print rows of the store. */
export function addQueryOptions(command: Command, limit: string): Command {
  return addHistoryOptions(command).addOption(limitOption(limit)).addOption(jsonOption());
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

/** `--cause ID`, in any case. */
export function causeOption(): Option {
  return new Option('--cause <id>', 'only failures with this cause').argParser((text) => {
    if (/^[0-9a-f]{16}$/i.test(text)) return text.toLowerCase();
    throw new InvalidArgumentError('It must be 16 hexadecimal digits, as causes prints them.');
  });
}

/** Parses a duration to ms, with the grammar of the configuration, for an argument of commander. */
function duration(text: string): number {
  const ms = parseDuration(text);
  if (ms !== undefined && Number.isSafeInteger(ms)) return ms;
  const suggestion = didYouMean(suggestDuration(text, '24h'));
  throw new InvalidArgumentError(
    `It must be a duration such as 30m, 24h or 7d${suggestion || '.'}`,
  );
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

/** Parses a TCP port, for an argument of commander. 0 is any free port. */
export function portNumber(text: string): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && number <= 65_535) return number;
  throw new InvalidArgumentError('It must be a port from 0 to 65535.');
}
