/** A simulated fleet of workers, as the scrapes of Prometheus see it. Times are seconds. */

/** Seconds between two steps of the simulation. */
export const STEP = 5;
/** Seconds between two scrapes of a worker. The workers are scraped one after the other. */
const SCRAPE_EVERY = 15;
/** Seconds between two polls of a project. */
const POLL_EVERY = 30;

/** Content of a scrape of a worker. */
export interface Shown {
  /** Projects whose series it exports. */
  readonly projects: readonly string[];
  /** Projects that it owns. Default: `projects`. */
  readonly owned?: readonly string[];
  /** Value of evalwatch_projects_configured; undefined for a worker of an older version. */
  readonly configured: number | undefined;
  /** Whether the database answers. Default true. */
  readonly isConnected?: boolean;
  /** End of the lease, if the worker has lost it. */
  readonly leaseLostAt?: number;
  /** Whether it is a daemon of its own, with SQLite. Default false. */
  readonly isAlone?: boolean;
}

/** The state of a target: `down` cannot be scraped, `gone` is no target. */
export type View = Shown | 'down' | 'gone';

export interface Fleet {
  readonly seconds: number;
  /** Workers by instance, each with its view at a time. */
  readonly workers: Readonly<Record<string, (at: number) => View>>;
}

/** The state of a project at a time, and since when its owner has owned it. */
export interface Moment {
  readonly at: number;
  /** Time of the last poll. */
  readonly polledAt: number;
  readonly ownedSince: number;
  /** Whether the last poll could not be committed. */
  readonly isStoreFailing: boolean;
}

/** Returns samples of a project: those read from the store, and those kept by the process. */
export type Samples = (moment: Moment) => Readonly<Record<'store' | 'process', Values>>;
type Values = Readonly<Record<string, number>>;

/** Returns the input series of promtool, in steps of `STEP`. */
export function seriesOf(
  { seconds, workers }: Fleet,
  samplesOf: (project: string) => Samples,
): readonly { readonly series: string; readonly values: string }[] {
  const names = Object.keys(workers);
  const tokens = new Map<string, string[]>();
  const shownBefore = new Map<string, ReadonlySet<string>>();
  const moments = new Map<string, Map<string, Moment>>(names.map((name) => [name, new Map()]));
  const lastPolls = new Map<string, number>();
  for (let at = 0, step = 0; at <= seconds; at += STEP, step += 1) {
    for (const [index, name] of names.entries()) {
      const view = workers[name]?.(at) ?? 'gone';
      const owned = advance(moments.get(name) ?? new Map<string, Moment>(), lastPolls, view, at);
      if (at % SCRAPE_EVERY !== (index * STEP) % SCRAPE_EVERY) continue;
      const samples = scrape(view, owned, lastPolls, at, samplesOf);
      const put = (series: string, token: string) => {
        const full = series.includes('{')
          ? series.replace('{', `{job="evalwatch",instance="${name}",`).replace(',}', '}')
          : `${series}{job="evalwatch",instance="${name}"}`;
        const values = tokens.get(full) ?? [];
        tokens.set(full, values);
        while (values.length < step) values.push('_');
        values.push(token);
      };
      for (const [series, value] of samples) put(series, String(value));
      for (const series of shownBefore.get(name) ?? []) {
        if (!samples.has(series)) put(series, 'stale');
      }
      shownBefore.set(name, new Set(samples.keys()));
    }
  }
  return [...tokens].map(([series, values]) => ({ series, values: values.join(' ') }));
}

/** Polls the projects that the worker owns: new ones at once, then every `POLL_EVERY`. */
function advance(
  owned: Map<string, Moment>,
  lastPolls: Map<string, number>,
  view: View,
  at: number,
): ReadonlyMap<string, Moment> {
  const shown: Shown = typeof view === 'string' ? { projects: [], configured: 0 } : view;
  const projects = shown.owned ?? shown.projects;
  for (const project of owned.keys()) if (!projects.includes(project)) owned.delete(project);
  for (const project of projects) {
    const before = owned.get(project);
    const isDue = before === undefined || at % POLL_EVERY === 0;
    const isStoreFailing = isDue ? shown.isConnected === false : before.isStoreFailing;
    if (isDue && !isStoreFailing) lastPolls.set(project, at);
    const polledAt = lastPolls.get(project) ?? at;
    owned.set(project, { at, polledAt, ownedSince: before?.ownedSince ?? at, isStoreFailing });
  }
  return owned;
}

function scrape(
  view: View,
  owned: ReadonlyMap<string, Moment>,
  lastPolls: ReadonlyMap<string, number>,
  at: number,
  samplesOf: (project: string) => Samples,
): ReadonlyMap<string, number> {
  const samples = new Map<string, number>();
  if (view === 'gone') return samples;
  if (view === 'down') return samples.set('up', 0);
  const { projects, configured, isConnected = true, leaseLostAt, isAlone = false } = view;
  samples.set('up', 1);
  samples.set('process_start_time_seconds', -99_000);
  if (!isAlone) {
    samples.set('evalwatch_worker_projects', owned.size);
    samples.set('evalwatch_worker_lease_expiry_timestamp_seconds', leaseLostAt ?? at + 10);
  }
  if (configured !== undefined) samples.set('evalwatch_projects_configured', configured);
  if (isConnected) {
    samples.set('evalwatch_error_info_backlog', 1);
    samples.set('evalwatch_error_info_backlog_oldest_timestamp_seconds', -9000);
  }
  for (const project of projects) {
    const polledAt = lastPolls.get(project) ?? at;
    const moment = owned.get(project) ?? {
      at,
      polledAt,
      ownedSince: at,
      isStoreFailing: false,
    };
    const { store, process } = samplesOf(project)(moment);
    const values = { ...(isConnected && store), ...process };
    const isOwned = owned.has(project);
    for (const [name, value] of Object.entries(values)) {
      if (name.startsWith('evalwatch_project_next_poll') && !isOwned) continue;
      samples.set(name.replace('{', `{project="${project}",`), value);
    }
  }
  return samples;
}
