import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { Config } from '../../src/config/config.ts';
import type { JournalEntry } from '../../src/simulator/world/journal.ts';
import { checkStore } from '../../src/store/sqlite/check.ts';
import { startSimulator } from '../../src/simulator/server.ts';
import { commandLine } from '../../test/support/command-line.ts';
import { differences } from '../../test/support/oracle.ts';
import { errorTotalsOf } from '../../test/support/oracle/error-totals.ts';
import type {
  FailureRow,
  Observation,
  Run,
  StatusRow,
  TransitionRow,
} from '../../test/support/oracle/observation.ts';
import { scrape } from '../../test/support/scrape.ts';
import { checkAgainstWorld } from '../../test/support/soak/at-rest.ts';
import {
  KEY,
  makeProjects,
  MISSING_AFTER,
  type Project,
  writeConfiguration,
} from '../../test/support/soak/configuration.ts';
import { answerTheDead, until } from '../../test/support/soak/disturbance.ts';
import { createLivingWorld } from '../../test/support/soak/living-world.ts';
import { startDaemon } from '../../test/support/soak/processes.ts';
import { temporaryDirectory } from '../../test/support/temporary.ts';
import { randomNumbers } from '../random.ts';
import { type End, live, type Place } from './life.ts';
import { type Call, CALLS, type Step, STEPS } from './steps.ts';

/** One store, and processes on it that are killed one after the other. */
export interface ChainOptions {
  readonly seed: number;
  readonly kills: number;
  /** Index of the first step. */
  readonly firstStep: number;
  /** Maximum pass of a step at which a process dies; the minimum is the first. */
  readonly passes: number;
  /** Directory of the sources, with a slash at its end. */
  readonly source: string;
  /** Path of strace. */
  readonly strace: string;
}

export interface ChainReport {
  /** Number of kills at each step or call. */
  readonly kills: ReadonlyMap<string, number>;
  readonly daemonKills: number;
  readonly transitions: number;
  readonly failures: number;
  readonly failureLines: number;
  readonly repeatedLines: number;
  readonly differences: readonly string[];
}

/** Options of a daemon whose five minutes pass in three seconds, and that requests only error_infos. */
const SPEED = 100;
const QUIET = { schedule: '0 0 1 1 *', timeout: '10m' };
const PATIENCE_MS = 120_000;
const ROUNDS_AT_REST = MISSING_AFTER + 3;
/** Number of processes that die while they create the store. */
const AT_THE_START = 3;
/** The 14th process and every 16th after it is the whole daemon, every fifth process is killed at a system call. */
const DAEMONS = 16;
const FIRST_DAEMON = 13;
const SYSTEM_CALLS = 5;

/**
 * Kills a process again and again while the world moves after each served listing, lets everything come to rest and compares
 * the results with what was served.
 */
export async function chain(options: ChainOptions): Promise<ChainReport> {
  const { seed, source, strace } = options;
  await using directory = await temporaryDirectory();
  await using opened = new AsyncDisposableStack();
  const projects = makeProjects(2);
  const living = createLivingWorld(
    projects.map(({ id }) => id),
    seed,
  );
  const journal: JournalEntry[] = [];
  let atRest = false;
  const simulator = await startSimulator({
    world: living.world,
    keys: KEY,
    journal: (entry) => {
      journal.push(entry);
      if (!atRest) living.step();
    },
  });
  opened.defer(() => simulator.close());
  const config = await writeConfiguration(directory.path, simulator.url, projects, {
    timeout: '1m',
  });
  const watcherConfig = join(directory.path, 'watcher.json');
  await writeFile(
    watcherConfig,
    JSON.stringify(watcherConfiguration(config, simulator.url, projects)),
  );
  const place: Place = { source, config, watcherConfig, strace };
  const store = join(directory.path, 'evalwatch.db');

  const runs: Run[] = [];
  const found: string[] = [];
  const kills = new Map<string, number>();
  let daemonKills = 0;
  for (const { program, end } of plan(options)) {
    const life = await live(place, program, end);
    await answerTheDead();
    const name = 'step' in end ? end.step : 'call' in end ? end.call : 'rounds';
    runs.push(life.run);
    kills.set(name, (kills.get(name) ?? 0) + 1);
    if (program === 'daemon') daemonKills += 1;
    const { asTold, garbled, stderr } = life;
    if (!asTold) found.push(`${program} did not die at ${JSON.stringify(end)}: ${stderr}`);
    found.push(...garbled.map((line) => `no log line: ${line}`));
    const integrity = checkIntegrity(store);
    if (integrity !== 'ok') found.push(`after ${JSON.stringify(end)}: ${integrity}`);
  }

  atRest = true;
  const last = await live(place, 'watcher', { rounds: ROUNDS_AT_REST });
  runs.push(last.run);
  if (!last.asTold) found.push(`the last life did not end by itself: ${last.stderr}`);
  await writeConfiguration(directory.path, simulator.url, projects, QUIET);
  runs.push(...(await outwait(config)));
  const shown = await show(config);
  runs.push(shown.run);
  const observation: Observation = {
    journal,
    key: KEY,
    missingAfter: MISSING_AFTER,
    projects,
    runs,
    transitions: shown.transitions,
    failures: shown.failures,
    statuses: shown.statuses,
    samples: shown.samples,
    errorTotals: errorTotalsOf(shown.samples),
    gave: living.gave,
  };
  const failedPolls = runs
    .flatMap(({ lines }) => lines)
    .filter(({ event }) => event === 'poll.failed' || event === 'api.retried');
  const failureLines = runs
    .flatMap(({ lines }) => lines)
    .filter(({ event }) => event === 'prompt.failed')
    .map((line) => line.transition_id);
  return {
    kills,
    daemonKills,
    transitions: shown.transitions.length,
    failures: shown.failures.length,
    failureLines: failureLines.length,
    repeatedLines: failureLines.length - new Set(failureLines).size,
    differences: [
      ...found,
      // The service has no faults here.
      ...failedPolls.map((line) => `no answer: ${JSON.stringify(line)}`),
      ...differences(observation),
      ...checkAgainstWorld(observation, living),
      ...shown.failures
        .filter(({ settled }) => !settled)
        .map((row) => `pending for ever: ${JSON.stringify(row)}`),
      ...(await checkStore(store)).flatMap(({ rule, findings }) =>
        findings.map((finding) => `at the end the store breaks the rule ${rule}: ${finding}`),
      ),
    ],
  };
}

function* plan({ seed, kills, firstStep, passes }: ChainOptions) {
  const random = randomNumbers(seed);
  const upTo = (most: number) => 1 + Math.floor(random() * most);
  const pick = <T>(list: readonly T[]) => list[Math.floor(random() * list.length)] as T;
  const transactions = STEPS.filter((step) => /^(begin|commit)/.test(step));
  let nextStep = firstStep;
  for (let n = 0; n < kills; n += 1) {
    const program = n % DAEMONS === FIRST_DAEMON ? ('daemon' as const) : ('watcher' as const);
    const [call, most] = pick(Object.entries(CALLS) as [Call, number][]);
    let end: End;
    if (n < AT_THE_START) end = { step: pick(transactions), pass: upTo(4) };
    else if (n % SYSTEM_CALLS === 2) end = { call, pass: upTo(most) };
    else {
      const pass = upTo(program === 'daemon' ? Math.min(3, passes) : passes);
      end = { step: STEPS[nextStep % STEPS.length] as Step, pass };
      nextStep += 1;
    }
    yield { program, end };
  }
}

function watcherConfiguration(
  file: string,
  baseUrl: string,
  projects: readonly Project[],
): Omit<Config, 'web'> {
  const beside = (name: string) => join(file, '..', name);
  return {
    file,
    files: [file],
    sources: [],
    service: {
      baseUrl,
      timeoutMs: 60_000,
      retries: 1,
      maxConcurrency: 8,
      maxRequestsPerSecond: 0,
      maxResponseBytes: 1024 * 1024,
      maxItems: 100_000,
      authorities: undefined,
      proxyUrl: undefined,
    },
    promptUrl: undefined,
    jitterMs: 0,
    missingAfter: MISSING_AFTER,
    projects: projects.map((project) => ({
      ...project,
      schedule: '* * * * * *',
      timezone: 'UTC',
      key: { file: beside('key') },
      team: '',
      expect: { limits: { PENDING: 'auto', RUNNING: 'auto' }, maxFailureRatio: 0.2 },
    })),
    store: { path: beside('evalwatch.db'), retentionMs: 90 * 24 * 60 * 60 * 1000 },
    log: { level: 'debug' },
    heartbeat: undefined,
  };
}

/** Returns `ok` or SQLite's errors. */
function checkIntegrity(path: string): string {
  // A kill may have come before the file existed or had content.
  const db = new Database(path, { timeout: 1000 });
  try {
    return String(db.pragma('integrity_check', { simple: true }));
  } finally {
    db.close();
  }
}

/**
 * Lets time pass: a prompt that moved on before its failure was logged has no error_info, and the line says so after five
 * minutes. Returns the daemon's run, if there is anything to wait for.
 */
async function outwait(config: string): Promise<readonly Run[]> {
  const rows = await rowsOf<FailureRow>('failures', config);
  const pending = rows.filter(({ settled }) => !settled);
  if (pending.length === 0) return [];
  const daemon = startDaemon(config, () => {}, { speed: SPEED });
  const { lines } = daemon.run;
  const isTold = (id: number) =>
    lines.some((line) => line.event === 'prompt.failed' && line.transition_id === id);
  await until(() => pending.every((row) => isTold(row.transition_id)), PATIENCE_MS);
  await daemon.stop('SIGTERM');
  return [daemon.run];
}

/** Returns what a daemon and the commands show of the store. */
async function show(config: string) {
  const daemon = startDaemon(config, () => {});
  if (!(await until(() => daemon.url() !== undefined, PATIENCE_MS))) {
    throw new Error('the last daemon did not start');
  }
  const { samples } = await scrape(daemon.url() ?? '');
  await daemon.stop('SIGTERM');
  return {
    run: daemon.run,
    samples,
    transitions: await rowsOf<TransitionRow>('transitions', config),
    failures: await rowsOf<FailureRow>('failures', config),
    statuses: await rowsOf<StatusRow>('status', config),
  };
}

/** Returns what a command that reads the store prints. @throws if it fails */
async function rowsOf<Row>(command: string, config: string): Promise<readonly Row[]> {
  const { code, stdout, stderr } = await commandLine([command, '--json', '--config', config]);
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${stderr}`);
  return JSON.parse(stdout) as readonly Row[];
}
