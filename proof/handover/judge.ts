import { type Prometheus, SCRAPE_S } from './prometheus.ts';

const STEP_S = 5;
/** Maximum time without series of a project that changes hands: a lease of 10 s, a beat and a scrape. */
const MAX_UNSHOWN_S = 10 + 2.5 + SCRAPE_S;

/** Project whose key is refused. */
export const FAILING = 'failing';
/** Project with a prompt that hangs. */
export const STUCK = 'stuck';

/** Alerts that are true from the start, by alert and project. */
export const TRUE_FROM_START = [
  `EvalwatchAuthFailing ${FAILING}`,
  `EvalwatchProjectPollFailing ${FAILING}`,
  `EvalwatchPromptStuck ${STUCK}`,
];
/** Alerts that disturbances may make true. */
const TRUE_LATER = [`EvalwatchDataStale ${FAILING}`, 'EvalwatchStoreWriteFailing'];

/** A period in which no worker could show a project, epoch seconds. */
export interface Outage {
  readonly from: number;
  readonly to: number;
}

/** The period that is judged, epoch seconds. */
interface Seen {
  readonly from: number;
  readonly to: number;
  readonly outages: readonly Outage[];
  readonly projects: number;
}

interface Judgement {
  readonly found: readonly string[];
  /** Longest time for which no worker showed a project although the database was available. */
  readonly unshownS: number;
}

/** Compares what Prometheus recorded with what is true. */
export async function differencesOf(prometheus: Prometheus, seen: Seen): Promise<Judgement> {
  const found = await findDifferences(prometheus, seen);
  const unshownS = await longestUnshown(prometheus, seen);
  if (unshownS > MAX_UNSHOWN_S) found.push(`a project had no series for ${unshownS} s`);
  return { found, unshownS };
}

async function longestUnshown(
  prometheus: Prometheus,
  { outages, from, to, projects }: Seen,
): Promise<number> {
  const shown = await prometheus.range('count by (project) (evalwatch_project_up)', from, to, 1);
  const gaps = shown.flatMap(({ samples }) => {
    const times = [from, ...samples.map(([at]) => at), to];
    return times.slice(1).map((end, index) => [times[index] ?? from, end] as const);
  });
  const isOutage = ([start, end]: readonly [number, number]) =>
    outages.some((outage) => start < outage.to && end > outage.from);
  const lengths = gaps.filter((gap) => !isOutage(gap)).map(([start, end]) => end - start);
  if (shown.length !== projects) throw new Error(`${shown.length} projects were shown`);
  // Two samples are a second apart where nothing is missing.
  return Math.ceil(Math.max(1, ...lengths) - 1);
}

async function findDifferences(
  prometheus: Prometheus,
  { from, to, projects: count }: Seen,
): Promise<string[]> {
  const query = (text: string) => prometheus.range(text, from, to, STEP_S);
  const firing = await query('ALERTS{alertname!="EvalwatchWatchdog",alertstate="firing"}');
  const since = await query('ALERTS_FOR_STATE{alertname!="EvalwatchWatchdog"}');
  const totals = await query('max by (project, from, to) (evalwatch_prompt_transitions_total) > 0');
  const projects = await query('count(project:evalwatch_project_up:max) or vector(0)');
  const found: string[] = [];
  for (const { labels, samples } of firing) {
    const name = nameOf(labels);
    if (![...TRUE_FROM_START, ...TRUE_LATER].includes(name)) found.push(`${name} fired`);
    const [begin = 0] = samples[0] ?? [];
    const [end = 0] = samples.at(-1) ?? [];
    if ((end - begin) / STEP_S + 1 !== samples.length) found.push(`${name} has a gap`);
    if (TRUE_FROM_START.includes(name) && end < to - 2 * STEP_S) found.push(`${name} ended`);
  }
  for (const name of TRUE_FROM_START) {
    if (!firing.some(({ labels }) => nameOf(labels) === name)) found.push(`${name} did not fire`);
    const series = since.filter(({ labels }) => nameOf(labels) === name);
    const begins = new Set(series.flatMap(({ samples }) => samples.map(([, value]) => value)));
    if (begins.size !== 1) found.push(`${name} began ${begins.size} times`);
  }
  for (const { labels, samples } of totals) {
    const falls = samples.some(([, value], index) => value < (samples[index - 1]?.[1] ?? 0));
    if (falls) found.push(`a total of ${labels['project']} went backwards`);
  }
  if (totals.length === 0) found.push('no totals');
  for (const [at, recorded] of projects.flatMap(({ samples }) => samples)) {
    if (recorded !== count) found.push(`${recorded} projects ${Math.round(at - from)} s in`);
  }
  return found;
}

function nameOf({ alertname, project, instance }: Readonly<Record<string, string>>): string {
  return [alertname, project ?? instance].filter((part) => part !== undefined).join(' ');
}
