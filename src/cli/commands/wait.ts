import { randomUUID } from 'node:crypto';
import { accessSync, constants, statSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { InvalidArgumentError, Option } from 'commander';
import { resolveFromUser } from '../../config/environment.ts';
import { visible } from '../../domain/visible.ts';
import { duration as inWords, grouped } from '../../domain/words.ts';
import { readTextFile } from '../../files/read-file.ts';
import { type ExperimentFields, transitionSchema } from '../../rows/schema.ts';
import { type Context, type Define, UsageError } from '../command.ts';
import { DaemonClient, type StreamEvent } from '../daemon-client.ts';
import { junitXml } from '../junit.ts';
import { duration, interval, jsonOption } from '../options.ts';
import { formatTime, ReaderGoneError } from '../output.ts';
import { toJsonDocument } from '../table.ts';
import { type Result, type WaitOptions, Waiting } from '../waiting.ts';

const MAX_CAUSES = 3;
const MAX_LOGIN_BYTES = 16 * 1024;

interface Options extends WaitOptions {
  readonly url: URL;
  readonly maxFailureRatio: number;
  readonly userFile?: string;
  readonly json?: true;
}

const HELP = `
For pipelines. Without --experiment, waits for all experiments that run, and for those that begin meanwhile; if none
runs, for the next one. --experiment may be a name that evalwatch does not know yet. Reads the API of a running daemon,
and continues after its restart. On a terminal, prints each change of a prompt.

Exit codes: 0 finished, and of each experiment at most --max-failure-ratio did not complete; 1 finished otherwise;
2 bad usage, or the daemon refuses to answer; 3 not finished within --timeout; 4 evalwatch cannot poll the project: the
last 3 polls failed, the last one during the wait, and none has succeeded for 5 minutes or ever; or it is paused.

Examples:
  evalwatch wait --url http://evalwatch:10570 --project checkout-bot --experiment nightly-42
  evalwatch wait --url https://evalwatch.example.com --user-file login --project checkout-bot \\
    --experiment "pr-$CI_PIPELINE_ID" --max-failure-ratio 0.05 --timeout 1h --junit evaluation.xml`;

export const defineWait: Define = (command, run) => {
  command
    .requiredOption('--url <url>', 'address of the daemon', address)
    .requiredOption('--project <id>', 'project of the experiment')
    .addOption(new Option('--experiment <name>', 'wait for this one').argParser(notEmpty))
    .addOption(
      new Option('--since <duration>', 'how long ago --experiment may have finished')
        .argParser(duration)
        .default(3_600_000, '1h'),
    )
    .addOption(
      new Option('--max-failure-ratio <ratio>', 'share of the prompts that need not complete')
        .argParser(ratio)
        .default(0),
    )
    .addOption(
      new Option('--timeout <duration>', 'how long to wait')
        .argParser(interval)
        .default(7_200_000, '2h'),
    )
    .option('--junit <file>', 'write a test report, with a test case for each prompt')
    .option('--user-file <file>', 'login for the daemon: a file with user:password')
    .addOption(jsonOption())
    .addHelpText('after', HELP)
    .action(run(wait));
};

function address(text: string): URL {
  const url = URL.parse(text.replace(/\/?$/, '/'));
  const isUsable = url !== null && /^https?:$/.test(url.protocol) && url.search + url.hash === '';
  if (isUsable && url.username + url.password === '') return url;
  // Commander would quote the address, and a password in it.
  throw new UsageError('--url must be http://HOST:PORT or https://HOST:PORT, without a login');
}

function notEmpty(text: string): string {
  if (text !== '') return text;
  throw new InvalidArgumentError('Prompts without an experiment do not finish together.');
}

function ratio(text: string): number {
  const number = Number(text);
  if (/^[\d.]+$/.test(text) && number <= 1) return number;
  throw new InvalidArgumentError('It must be a number from 0 to 1.');
}

async function wait(context: Context, options: Options): Promise<number> {
  const { stdout, warn, env } = context;
  const { junit, userFile, json, maxFailureRatio } = options;
  const report = junit === undefined ? undefined : resolveFromUser(junit, env);
  if (report !== undefined) assertWritable(report);
  const login = userFile === undefined ? undefined : readLogin(resolveFromUser(userFile, env));
  await using client = new DaemonClient(options.url, login);
  const waiting = new Waiting(client, options, warn);
  const { fault, results } = await waiting.outcome(printer(context, options));

  const isOk = (row: ExperimentFields) =>
    row.state === 'finished' && ratioOf(row) <= maxFailureRatio;
  const text = json
    ? toJsonDocument(
        results.map(({ row }) => ({ ...row, failure_ratio: ratioOf(row), ok: isOk(row) })),
      )
    : results.map((each) => `${isOk(each.row) ? 'OK' : 'FAILED'}: ${visible(summaryOf(each))}\n`);
  if (report !== undefined) await replaceFile(report, junitXml(results, fault?.message));
  await stdout.write([text].flat().join('')).catch((error: unknown) => {
    // The exit code is the result.
    if (!(error instanceof ReaderGoneError)) throw error;
  });
  if (fault !== undefined) warn(`error: ${fault.message}`);
  const isEnough = results.every(({ row }) => isOk(row));
  return fault?.code ?? (isEnough ? 0 : 1);
}

/** Returns what prints the moves of prompts on a terminal. */
function printer({ stdout }: Context, { experiment, json }: Options) {
  return async (events: readonly StreamEvent[]): Promise<void> => {
    if (json || stdout.width === undefined) return;
    for (const { type, data } of events) {
      const move = type === 'transition' ? transitionSchema.safeParse(data).data : undefined;
      if (move === undefined || !('prompt_id' in move)) continue;
      if (experiment !== undefined && move.experiment !== experiment) continue;
      const at = formatTime(move.time);
      const where = `${move.experiment ?? 'none'}  ${move.prompt_id}`;
      await stdout.write(`${visible(`${at}  ${where}  ${move.from} -> ${move.to}`)}\n`);
    }
  };
}

/** Returns the share of prompts that are not COMPLETED. An experiment has prompts. */
function ratioOf({ prompts }: ExperimentFields): number {
  const total = Object.values(prompts).reduce((sum, count) => sum + count, 0);
  return (total - prompts.COMPLETED) / total;
}

function summaryOf({ row, prompts }: Result): string {
  const { PENDING, RUNNING, COMPLETED, FAILED, UNKNOWN } = row.prompts;
  const failed = prompts.filter(({ fields }) => fields.status === 'FAILED');
  const ids = Map.groupBy(failed, ({ failure }) => failure?.error_info?.error_id ?? 'no error_id');
  const causes = [...ids]
    .toSorted(([, one], [, other]) => other.length - one.length)
    .slice(0, MAX_CAUSES)
    .map(([id, { length }]) => `${id} ${grouped(length)}`);
  const counts = [
    `${grouped(COMPLETED)} completed`,
    FAILED > 0 && `${grouped(FAILED)} failed${causes.length > 0 ? ` (${causes.join(', ')})` : ''}`,
    UNKNOWN > 0 && `${grouped(UNKNOWN)} with an unknown status`,
    PENDING + RUNNING > 0 && `${grouped(PENDING + RUNNING)} not finished`,
  ];
  const { duration_seconds: seconds } = row;
  const took = seconds ? ` after ${inWords(seconds * 1000)}` : '';
  const state = seconds === null ? 'has not finished' : `finished${took}`;
  return `${row.experiment} of ${row.project} ${state}: ${counts.filter(Boolean).join(', ')}`;
}

/** @throws {UsageError} now, not after the wait */
function assertWritable(file: string): void {
  try {
    accessSync(dirname(file), constants.W_OK);
    // A device such as /dev/null must stay one.
    if (statSync(file, { throwIfNoEntry: false })?.isFile() !== false) return;
  } catch {
    // No such directory, or not a writable one.
  }
  throw new UsageError(`--junit: cannot write ${file}: name a file in a directory that exists`);
}

/** Writes a file whole or not at all. */
async function replaceFile(file: string, text: string): Promise<void> {
  const draft = `${file}.partial-${randomUUID()}`;
  try {
    await writeFile(draft, text, { flag: 'wx' });
    await rename(draft, file);
  } finally {
    await rm(draft, { force: true });
  }
}

/** Returns `user:password`. @throws {UsageError} without the path, which could be the login itself */
function readLogin(file: string): string {
  const { text, fault } = readTextFile(file, MAX_LOGIN_BYTES);
  const login = text?.trim() ?? '';
  if (/^[^:\p{Cc}]+:\P{Cc}+$/u.test(login)) return login;
  throw new UsageError(`--user-file: ${fault ?? 'the file must have one line, user:password'}`);
}
