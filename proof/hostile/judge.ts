import type { Scrape } from '../../test/support/scrape.ts';
import type { Figures } from '../row.ts';
import { DETAILS, echoesOf, HEALTHY, ODD, ODD_IDS } from './cast.ts';
import type { Form } from './form.ts';
import { KINDS } from './kinds.ts';
import type { WatchedDaemon } from './party.ts';
import type { Report } from './service.ts';

/** Allowed outcomes of polls, by hostile project. */
type Ends = Readonly<Record<string, readonly string[]>>;
type Rows = readonly Readonly<Record<string, unknown>>[];

/** Bounds. They are wide in the short forms, where the machine may be busy with other work. */
const BOUNDS = {
  long: { overdueMs: 1000, lateMs: 1000, growthMib: 200, blockMs: 500 },
  short: { overdueMs: 25_000, lateMs: 30_000, growthMib: 300, blockMs: 1000 },
  tests: { overdueMs: 120_000, lateMs: 120_000, growthMib: 300, blockMs: 5000 },
};
/** Timeout of the daemon's requests. */
export const TIMEOUT_MS = 2000;
/** Maximum number of polls that had begun when the service turned hostile. */
const LAST_GOOD_POLLS = 2;

/** Reasons for any poll to fail: a busy machine, or a connection broken by the previous answer. */
const COLLATERAL = ['timeout', 'network'];
const FAILURES = 'evalwatch_poll_failures_total';
/** Metrics that do not change while polls fail or find the same statuses. */
const KEPT: ReadonlySet<string> = new Set([
  'evalwatch_prompts',
  'evalwatch_prompts_missing',
  'evalwatch_prompts_gone_total',
  'evalwatch_prompt_transitions_total',
]);
const LEVELS = new Set(['debug', 'info', 'warn', 'error']);

export interface Glimpse {
  readonly form: Form;
  readonly seen: Scrape;
  /** Last scrape before the hostility. */
  readonly before: Scrape;
  readonly daemon: Pick<WatchedDaemon, 'garbled' | 'lines'>;
  /** Longest block of the event loop, ms of CPU time. */
  readonly blockMs: number;
  /** MiB. */
  readonly rss: { readonly quiet: number; readonly most: number };
  readonly report: Report;
  readonly ends: Ends;
}

/** Returns what is wrong while the service is hostile. */
export function judgeMeanwhile(glimpse: Glimpse): readonly string[] {
  const [seen, before] = [byProject(glimpse.seen), byProject(glimpse.before)];
  const misled = Object.entries(glimpse.ends).flatMap(([project, allowed]) => {
    const succeeded = successesOf(seen.get(project)) - successesOf(before.get(project));
    const isMisled = !allowed.includes('ok') && !(succeeded <= LAST_GOOD_POLLS);
    return isMisled ? [`${project}: ${succeeded} polls succeeded`] : [];
  });
  return [...misled, ...judgeAlways(glimpse)];
}

/** Returns what is wrong at any time. */
export function judgeAlways(glimpse: Glimpse): readonly string[] {
  const { form, seen, before, daemon, ends, report, rss, blockMs } = glimpse;
  const shown = byProject(seen);
  const { overdueMs, growthMib, ...bounds } = BOUNDS[form];
  const overdue = report.longest.ms - TIMEOUT_MS;
  const growth = rss.most - rss.quiet;
  return [
    ...report.strange.map((line) => `the service was asked ${line}`),
    ...(report.elsewhere === 0 ? [] : [`${report.elsewhere} connections elsewhere`]),
    ...(overdue <= overdueMs ? [] : [`${report.longest.what}: open ${overdue} ms too long`]),
    ...(growth <= growthMib ? [] : [`memory grew by ${growth} MiB`]),
    ...(blockMs <= bounds.blockMs ? [] : [`the event loop was held up for ${blockMs} ms`]),
    ...Object.entries(ends).flatMap(([project, allowed]) =>
      (shown.get(project) ?? []).flatMap(({ name, family, value }) => {
        const isWrong = KEPT.has(family)
          ? before.samples.get(name) !== value
          : isFailure(family, value) && !hasReason(name, [...allowed, ...COLLATERAL]);
        return isWrong ? [`${name} is ${value}`] : [];
      }),
    ),
    ...daemon.garbled.map((line) => `no log line: ${line.slice(0, 200)}`),
    ...daemon.lines
      .filter(({ event, level, time }) => event === 'forged' || !LEVELS.has(level) || !time)
      .map((line) => `a forged line: ${JSON.stringify(line).slice(0, 200)}`),
  ];
}

/** Whether every hostile project has had a poll with an allowed outcome. */
export function haveAllEnded(ends: Ends, seen: Scrape, before: Scrape): boolean {
  const [shown, shownBefore] = [byProject(seen), byProject(before)];
  return Object.entries(ends).every(([project, allowed]) => {
    const series = shown.get(project) ?? [];
    const succeeded = successesOf(series) - successesOf(shownBefore.get(project));
    return (
      (allowed.includes('ok') && succeeded > LAST_GOOD_POLLS) ||
      series.some(({ family, name, value }) => isFailure(family, value) && hasReason(name, allowed))
    );
  });
}

/** Counts polls that failed for other reasons than those of their project. */
function countCollateral(ends: Ends, seen: Scrape): number {
  const shown = byProject(seen);
  return sum(
    Object.entries(ends).flatMap(([project, allowed]) =>
      (shown.get(project) ?? [])
        .filter(({ family, name, value }) => isFailure(family, value) && !hasReason(name, allowed))
        .map(({ value }) => value),
    ),
  );
}

function isFailure(family: string, value: number): boolean {
  return family === FAILURES && value > 0;
}

function hasReason(name: string, reasons: readonly string[]): boolean {
  return reasons.some((reason) => name.includes(`"${reason}"`));
}

interface Series {
  readonly name: string;
  readonly family: string;
  readonly value: number;
}

function byProject({ samples }: Scrape): ReadonlyMap<string, readonly Series[]> {
  const series = [...samples].map(([name, value]) => {
    const [, family = '', project = ''] = /^(\w+)\{project="([^"]*)"/.exec(name) ?? [];
    return { name, family, project, value };
  });
  return Map.groupBy(series, ({ project }) => project);
}

function successesOf(series: readonly Series[] = []): number {
  const count = (of: string) =>
    sum(series.filter(({ family }) => family === of).map(({ value }) => value));
  return count('evalwatch_polls_total') - count(FAILURES);
}

export interface Observed extends Glimpse {
  readonly held: readonly string[];
  /** Last scrape while the service was hostile; `seen` is the last of all. */
  readonly during: Scrape;
  readonly code: number | null;
  readonly statuses: Rows;
  readonly transitions: Rows;
  readonly failures: Rows;
  /** All output of the daemon, including its store. */
  readonly told: readonly string[];
  readonly key: string;
}

/** Returns the figures. @throws with up to 30 faults */
export function judge(observed: Observed): Figures {
  const { form, ends, held, during, before, report, told, rss, key } = observed;
  const { lateMs } = BOUNDS[form];
  const hostile = Object.keys(ends);
  const lateness = Object.values(report.arrivals).flatMap(latenessOf);
  const latest = Math.max(...lateness);
  const echoed = echoesOf(key).filter((echo) => told.some((text) => text.includes(echo)));
  const overdue = report.longest.ms - TIMEOUT_MS;
  const patient = held.filter((project) => (report.asked[project] ?? 0) > 1);
  const polls = hostile.map(
    (project) =>
      (during.value('evalwatch_polls_total', { project }) ?? NaN) -
      (before.value('evalwatch_polls_total', { project }) ?? NaN),
  );
  const faults = [
    ...judgeAlways(observed),
    ...judgeStatuses(observed),
    ...judgeLines(observed),
    ...judgeOdd(observed),
    ...judgeDetails(observed),
    ...judgeLively(observed),
    ...patient.map((project) => `${project}: asked again too early`),
    ...(latest <= lateMs ? [] : [`a healthy poll was ${latest} ms late`]),
    ...echoed.map((echo) => `the key is told as ${echo}`),
    ...(observed.code === 0 ? [] : [`ended with ${observed.code}`]),
  ];
  if (faults.length > 0) throw new Error(faults.slice(0, 30).join('\n'));
  return [
    ['kinds of hostility, a project each', String(hostile.length)],
    ['their polls meanwhile', `${sum(polls)}, ${Math.min(...polls)} at least`],
    ['of them failed by the load or a broken connection', String(countCollateral(ends, during))],
    ['single prompts asked for meanwhile', String(report.details)],
    ['false transitions, missing, gone', '0, 0, 0'],
    [
      'answers that never ended, cut off',
      `${report.unanswered}, at the latest ${Math.ceil(overdue)} ms after the deadline`,
    ],
    ['requests elsewhere, key told, lines forged', '0, 0, 0'],
    [
      'polls of healthy projects',
      `${lateness.length}, the latest ${Math.ceil(latest)} ms after its time (the service itself was held up ${Math.ceil(report.lagMs)} ms)`,
    ],
    ['event loop held up', `${Math.round(observed.blockMs)} ms of CPU time at most`],
    ['memory', `${Math.round(rss.quiet)} MiB before, ${Math.round(rss.most)} MiB at most`],
  ];
}

/** Returns how late each request was, ms: it was due at the next second after the previous one. */
function latenessOf(arrivals: readonly number[]): readonly number[] {
  return arrivals.slice(1).map((at, index) => {
    const due = (Math.floor((arrivals[index] ?? at) / 1000) + 1) * 1000;
    return Math.max(0, at - due);
  });
}

/** Checks that each hostile project keeps its statuses. */
function judgeStatuses({ ends, statuses }: Observed): readonly string[] {
  const expected = 'completed COMPLETED,failed FAILED,pending PENDING,running RUNNING';
  return Object.keys(ends).flatMap((of) => {
    const shown = statuses
      .filter(({ project }) => project === of)
      .map(({ prompt_id, status }) => `${String(prompt_id)} ${String(status)}`)
      .toSorted();
    return shown.join() === expected ? [] : [`${of} shows ${shown.join()}`];
  });
}

/** Checks that each project that must fail has a line, which holds the location of a redirect. */
function judgeLines({ ends, daemon }: Observed): readonly string[] {
  const lines = daemon.lines.filter(({ event }) => event === 'poll.failed') as unknown as Rows;
  return Object.entries(ends).flatMap(([of, allowed]) => {
    if (allowed.includes('ok')) return [];
    const line = lines.find(({ project }) => project === of);
    if (line === undefined) return [`${of}: no line`];
    const mustShow = line['reason'] === 'redirect' && /^redirect( \d|, (?!empty))/.test(of);
    return mustShow && line['location'] === undefined ? [`${of}: no location`] : [];
  });
}

/** Checks that each prompt with a strange id has one transition, one settled failure and one status. */
function judgeOdd({ transitions, failures, statuses }: Observed): readonly string[] {
  return ODD_IDS.flatMap((id) => {
    const isOf = (row: Rows[number]) => row['project'] === ODD && row['prompt_id'] === id;
    const moves = transitions.filter(isOf).map(({ from, to }) => `${String(from)} ${String(to)}`);
    const reason = id === '.' || id === '..' ? 'invalid_id' : null;
    const told = failures
      .filter(isOf)
      .map((row) => (row['settled'] === true ? row['reason'] : '?'));
    const faults = [
      ...(moves.join() === 'RUNNING FAILED' ? [] : [`moved ${moves.join()}`]),
      ...(told.length === 1 && told[0] === reason ? [] : [`told ${told.join()}`]),
      ...(statuses.filter(isOf).length === 1 ? [] : ['is not there']),
    ];
    return faults.map((fault) => `${JSON.stringify(id).slice(0, 40)}: ${fault}`);
  });
}

/** Checks that each prompt whose details are hostile has one transition and no made-up error_info. */
function judgeDetails({ ends, transitions, failures }: Observed): readonly string[] {
  const cheap = Object.keys(ends).filter((id) => id in KINDS);
  return cheap.flatMap((id) => {
    const isOf = (row: Rows[number]) => row['project'] === DETAILS && row['prompt_id'] === id;
    const made = failures
      .filter(isOf)
      .map(({ error_info: info }) => info as { error_id: string } | null)
      .filter((info) => info !== null && !info.error_id.startsWith('E'));
    const moves = transitions.filter(isOf).length;
    return moves === 1 && made.length === 0 ? [] : [`details of ${id}: ${moves} moves`];
  });
}

/** Checks that the lively prompt's moves are recorded as served, except where a poll timed out, and its failures logged. */
function judgeLively({ report, transitions, daemon }: Observed): readonly string[] {
  const shown = report.moves.filter((status, index) => status !== report.moves[index - 1]);
  const moves = transitions
    .filter(({ project, prompt_id }) => project === HEALTHY[3] && prompt_id === 'mover')
    .map(({ to }) => to)
    .toReversed();
  const failed = moves.filter((to) => to === 'FAILED').length;
  const lines = daemon.lines.filter(
    ({ event, project }) => event === 'prompt.failed' && project === HEALTHY[3],
  );
  return [
    ...(isWithin(moves, shown) && moves.at(-1) === shown.at(-1)
      ? []
      : [`shown ${shown.join()}, recorded ${moves.join()}`]),
    ...(lines.length === failed ? [] : [`${failed} failures, ${lines.length} lines`]),
  ];
}

/** Whether `parts` is a subsequence of `all`. */
function isWithin(parts: readonly unknown[], all: readonly unknown[]): boolean {
  const rest = all.values();
  return parts.every((part) => rest.some((each) => each === part));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
