/**
 * The ways in which the dashboard reads evalwatch's metrics. They hold for one replica and for several that share a
 * store: each of them tells the same of the store, so the greatest counts once; what a process counts adds up.
 */

const PROJECT = 'project=~"$project"';

/** A selector of series that have a project: those of the projects chosen. */
export function chosen(metric: string, matchers = ''): string {
  return `${metric}{${[PROJECT, matchers].filter((part) => part !== '').join(', ')}}`;
}

/** A gauge of the store, or of a project's schedule, by these labels. */
export function told(by: string, metric: string, matchers = ''): string {
  return `max by (${by}) (${chosen(metric, matchers)})`;
}

/**
 * How much a total of the store grew within a time: exact where increase() extrapolates, and restarts do not show, as
 * the store goes on counting. `by` has all its labels.
 */
export function grown(by: string, metric: string, range: string, matchers = ''): string {
  const total = chosen(metric, matchers);
  return `max by (${by}) (${total} - min_over_time(${total}[${range}]))`;
}

/** How much counters of the processes grew in an interval, together, by these labels; only what did grow. */
export function counted(by: string, metric: string): string {
  return `sum by (${by}) (increase(${chosen(metric)}[$__rate_interval])) > 0`;
}

/** A selector's rate per second over all processes, by these labels or in all. */
export function rate(selector: string, by?: string): string {
  return `sum${by === undefined ? '' : ` by (${by})`} (rate(${selector}[$__rate_interval]))`;
}

/** A quantile of a histogram of the processes, by these labels or in all. */
export function quantile(q: number, histogram: string, by?: string): string {
  const labels = by === undefined ? 'le' : `${by}, le`;
  return `histogram_quantile(${q}, ${rate(`${histogram}_bucket`, labels)})`;
}

/** How old a project's data is, as a share of the age at which EvalwatchDataStale fires. */
export function staleness(): string {
  const success = told('project', 'evalwatch_poll_last_success_timestamp_seconds');
  const configured = told('project', 'evalwatch_project_configured_timestamp_seconds');
  const interval = told('project', 'evalwatch_project_schedule_max_interval_seconds');
  return `(time() - (${success} or ${configured})) / (2 * ${interval} + 300)`;
}
