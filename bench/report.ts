/** Cost of one contender in one run; figures that were not measured are absent. */
export interface Figures {
  /** User and system time of all its threads, per round. */
  readonly cpuMs?: number;
  readonly wallMs?: number;
  /** Longest block of the event loop, in the median round. */
  readonly blockMs?: number;
  /** Longest block in the worst round. Other processes on the machine lengthen it. */
  readonly worstBlockMs?: number;
  /** Peak resident memory. */
  readonly peakBytes?: number;
  /** Resident memory while idle. */
  readonly restBytes?: number;
}

/** Figures of each run, by contender. */
export type Runs = Readonly<Record<string, readonly Figures[]>>;

/** Limit of a figure: `most` times that of `over`, `most` bytes above `restBytes` of `above`, or `most` ms or bytes. */
export interface Goal {
  readonly metric: keyof Figures;
  /** Contender that has to reach it; default evalwatch. */
  readonly of?: string;
  readonly over?: string;
  readonly above?: string;
  readonly most: number;
}

/** One figure that is no cost of a contender, with its bounds. */
export interface Line {
  readonly what: string;
  readonly value: number;
  readonly unit: string;
  readonly most?: number;
  readonly least?: number;
  /** Whether a figure out of bounds means that something is broken, which sets exit code 1. */
  readonly isPromise?: boolean;
}

export type Bounds = Pick<Line, 'most' | 'least' | 'isPromise'>;

/** Bounds of what must never happen, and of what must. */
export const NEVER: Bounds = { most: 0, isPromise: true };
export const AT_LEAST_ONE: Bounds = { least: 1, isPromise: true };

export function line(what: string, value: number, unit = '', bounds: Bounds = {}): Line {
  return { what, value, unit, ...bounds };
}

/** What a row measured at one size. */
export interface Result {
  readonly size: string;
  readonly runs?: Runs;
  readonly lines?: readonly Line[];
}

export interface RowOptions {
  /** Prompts in a listing, for rows that are measured at several sizes. */
  readonly sizes: readonly number[];
  readonly runs: number;
  readonly isQuick: boolean;
  /** Directory for CPU profiles of the last runs of evalwatch. */
  readonly profiles: string | undefined;
  /** Time that rows with running daemons measure, s. */
  readonly seconds: number;
  /** Size of the row `workers`. */
  readonly workers: Readonly<Record<'count' | 'projects' | 'prompts' | 'every' | 'warmUp', number>>;
}

/** One kind of work, the goals for it, and how it is measured. */
export interface Row {
  /** Name on the command line. */
  readonly name: string;
  readonly title: string;
  readonly goals?: readonly Goal[];
  /** Measures one size after the other. */
  measure(options: RowOptions): AsyncIterable<Result>;
}

const COLUMNS: readonly (readonly [title: string, metric: keyof Figures, unit: number])[] = [
  ['wall ms', 'wallMs', 1],
  ['block ms', 'blockMs', 1],
  ['worst ms', 'worstBlockMs', 1],
  ['peak MB', 'peakBytes', 1e6],
  ['rest MB', 'restBytes', 1e6],
];
const WORDS: Readonly<Record<keyof Figures, string>> = {
  cpuMs: 'CPU',
  wallMs: 'wall time',
  blockMs: 'longest block',
  worstBlockMs: 'worst block',
  peakBytes: 'peak memory',
  restBytes: 'memory',
};

/** Prints a result: the medians of each contender, then the goals. Sets exit code 1 if a promise is broken. */
export function print({ name, title, goals = [] }: Row, { size, runs, lines = [] }: Result): void {
  console.log(`\n${name}: ${title}; ${size}`);
  if (runs !== undefined) printCosts(runs);
  for (const goal of goals) {
    const taken = runs && reached(goal, runs);
    if (taken !== undefined) console.log(`  ${verdictOn(goal, taken)}`);
  }
  lines.forEach(printLine);
}

function printCosts(runs: Runs): void {
  const all = Object.entries(runs);
  const has = (metric: keyof Figures) => valuesOf(metric, all[0]?.[1] ?? []).length > 0;
  const columns = COLUMNS.filter(([, metric]) => has(metric));
  const titles = [...(has('cpuMs') ? ['CPU ms', 'min', 'max'] : []), ...columns.map(([t]) => t)];
  console.log(row('', titles));
  for (const [name, figures] of all) {
    const cpu = valuesOf('cpuMs', figures);
    const cells = [
      ...(cpu.length === 0 ? [] : [median(cpu), Math.min(...cpu), Math.max(...cpu)]),
      ...columns.map(([, metric, unit]) => median(valuesOf(metric, figures)) / unit),
    ];
    console.log(row(name, cells.map(short)));
  }
}

function row(name: string, cells: readonly string[]): string {
  return `  ${name.padEnd(18)}${cells.map((cell) => cell.padStart(10)).join('')}`;
}

/** Returns the value of each run to compare with `goal.most`; undefined if not measured. */
function reached(goal: Goal, runs: Runs): readonly number[] | undefined {
  const { metric, of = 'evalwatch', over, above } = goal;
  const own = valuesOf(metric, runs[of] ?? []);
  const other = valuesOf(
    above === undefined ? metric : 'restBytes',
    runs[over ?? above ?? of] ?? [],
  );
  if (own.length === 0 || other.length === 0) return undefined;
  // Ratios within one run, because the speed of the machine changes from run to run.
  if (over !== undefined) return own.map((value, run) => value / (other[run] ?? Number.NaN));
  return above === undefined ? own : own.map((value) => value - median(other));
}

/** Says whether a goal is met: the median of the runs, and their range. */
function verdictOn({ metric, of, over, above, most }: Goal, taken: readonly number[]): string {
  const isBytes = over === undefined && metric.endsWith('Bytes');
  const unit = over === undefined ? (isBytes ? 'MB' : 'ms') : `× ${over}`;
  const words = (value: number) => short(isBytes ? value / 1e6 : value);
  const range = `${words(Math.min(...taken))} to ${words(Math.max(...taken))}`;
  const value = `${words(median(taken))} ${unit}${above === undefined ? '' : ` above ${above}`}`;
  return [
    `${median(taken) <= most ? 'met' : 'MISSED'}: ${WORDS[metric]}${of === undefined ? '' : `, ${of}`}`,
    `${value}${taken.length > 1 ? ` (${range})` : ''}, goal ≤ ${words(most)}`,
  ].join(' ');
}

function printLine({ what, value, unit, most, least, isPromise = false }: Line): void {
  const isKept = value <= (most ?? Infinity) && value >= (least ?? -Infinity);
  const bounds = [
    ...(most === undefined ? [] : [`at most ${most}`]),
    ...(least === undefined ? [] : [`at least ${least}`]),
    ...(isKept ? [] : [isPromise ? 'BROKEN' : 'MISSED']),
  ];
  const text = Number.isInteger(value) ? String(value) : short(value);
  console.log(
    `  ${what.padEnd(52)}${text.padStart(10)} ${unit.padEnd(4)} ${bounds.join(' ')}`.trimEnd(),
  );
  if (!isKept && isPromise) process.exitCode = 1;
}

function valuesOf(metric: keyof Figures, figures: readonly Figures[]): readonly number[] {
  return figures.map((each) => each[metric]).filter((value) => value !== undefined);
}

/** Rounds to about three digits. What was not measured is empty. */
function short(value: number): string {
  if (Number.isNaN(value)) return '';
  return value < 9.995 ? value.toFixed(2) : value.toFixed(value < 99.95 ? 1 : 0);
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** Returns a quantile of at least one value, between two values their mean. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  const at = share * (sorted.length - 1);
  const [lower = Number.NaN, upper = Number.NaN] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]];
  return (lower + upper) / 2;
}
