/**
 * Queries of the dashboard. They work for one daemon and for several workers, which each export the projects that they
 * own. Values from the store are the same wherever they are exported, so the maximum is used; counters of a process are
 * added up.
 */

const PROJECT = 'project=~"$project"';

/** Selects the series of the selected projects, of any team. */
function chosen(metric: string, matchers = ''): string {
  return `${metric}{${[PROJECT, matchers].filter((part) => part !== '').join(', ')}}`;
}

/**
 * Drops the series of projects that are not of the selected teams. It drops rather than keeps, so that with all teams
 * selected it shows every project, also while evalwatch_project_info does not exist yet.
 */
export function ofTeams(vector: string): string {
  return `${vector} unless on (project) evalwatch_project_info{team!~"$team"}`;
}

/** Returns a gauge of the store, or of a project's schedule, by these labels. */
export function told(by: string, metric: string, matchers = ''): string {
  return `max by (${by}) (${ofTeams(chosen(metric, matchers))})`;
}

/**
 * Returns the increase of a total of the store within a range. It is exact, while increase() extrapolates. Neither a
 * restart nor another owner affects it, because the store keeps the total. `by` must list all its labels.
 */
export function grown(by: string, metric: string, range: string, matchers = ''): string {
  const total = chosen(metric, matchers);
  return `(max by (${by}) (${ofTeams(total)}) - min by (${by}) (min_over_time(${total}[${range}])))`;
}

/** Returns a total of the store where it has a series now, and had none at the beginning of the range. */
export function begun(by: string, metric: string, range: string): string {
  const total = chosen(metric);
  return `max by (${by}) (${ofTeams(total)}) unless on (${by}) max by (${by}) (${ofTeams(`${total} offset ${range}`)})`;
}

/** Returns the increase of process counters of projects in a range, added up by these labels. */
export function added(by: string, metric: string, range: string, matchers = ''): string {
  return `sum by (${by}) (${ofTeams(`increase(${chosen(metric, matchers)}[${range}])`)})`;
}

/** Returns the increase of process counters in an interval, added up by these labels, without series that did not grow. */
export function counted(by: string, metric: string): string {
  return `${added(by, metric, '$__rate_interval')} > 0`;
}

/** Returns the rate per second of a counter of the projects, over all of them. */
export function projectRate(metric: string): string {
  return `sum(${ofTeams(`rate(${chosen(metric)}[$__rate_interval])`)})`;
}

/** Returns the rate per second over all processes, by these labels or in total. */
export function rate(selector: string, by?: string): string {
  return `sum${by === undefined ? '' : ` by (${by})`} (rate(${selector}[$__rate_interval]))`;
}

/** Returns a quantile of a histogram of the processes, by these labels or in total. */
export function quantile(q: number, histogram: string, by?: string): string {
  const labels = by === undefined ? 'le' : `${by}, le`;
  return `histogram_quantile(${q}, ${rate(`${histogram}_bucket`, labels)})`;
}

/** Returns the age of a project's data, as a share of the age at which EvalwatchDataStale fires. */
export function staleness(): string {
  const success = told('project', 'evalwatch_poll_last_success_timestamp_seconds');
  const configured = told('project', 'evalwatch_project_configured_timestamp_seconds');
  const interval = told('project', 'evalwatch_project_schedule_max_interval_seconds');
  return `(time() - (${success} or ${configured})) / (2 * ${interval} + 300)`;
}

/**
 * Returns the address to which the id of a project is appended to open its page, as the label `page`. All daemons of the
 * chosen projects must export the same one, because a wrong page is worse than none. Otherwise it opens the dashboard for
 * that project alone, which uses the address of its own daemon.
 */
export function pageAddress(): string {
  const up = chosen('evalwatch_project_up');
  const all = `group by (external_url) (evalwatch_web_info and on (instance) ${up})`;
  const isWithout = `(${up} unless on (instance) evalwatch_web_info)`;
  const only = `(${all} and on () count(${all}) == 1 unless on () ${isWithout})`;
  const page = `label_replace(${only}, "page", "$1/projects/", "external_url", "(.*)")`;
  return `${page} or on () label_replace(vector(1), "page", "?var-project=", "", "")`;
}
