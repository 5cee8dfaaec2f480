import type { SoakReport } from './soak.ts';

/** What a soak went through, for people. What only a daemon's memory counts is as of its last scrape. */
export function figuresOf({
  observation,
  scrapes,
  differences,
}: SoakReport): readonly (readonly [name: string, figure: string | number])[] {
  const { journal, runs, transitions, failures } = observation;
  const lines = runs.flatMap((run) => run.lines);
  const count = (event: string) => lines.filter((line) => line.event === event).length;
  const sum = (metric: string, label = '') =>
    scrapes
      .flatMap(({ samples }) => [...samples])
      .filter(([series]) => series.startsWith(`${metric}{`) && series.includes(label))
      .reduce((total, [, value]) => total + value, 0);
  const reasons = new Set(
    scrapes
      .flatMap(({ samples }) => [...samples.keys()])
      .flatMap(
        (series) => /^evalwatch_poll_failures_total\{.*reason="(\w+)"/.exec(series)?.[1] ?? [],
      ),
  );
  const failed = [...reasons]
    .map((reason) => [reason, sum('evalwatch_poll_failures_total', `reason="${reason}"`)] as const)
    .filter(([, polls]) => polls > 0)
    .map(([reason, polls]) => `${reason} ${polls}`);
  const toldIds = lines.filter(({ event }) => event === 'prompt.failed');
  const slowest = Math.max(...journal.map(({ producedAt, finishedAt }) => finishedAt - producedAt));
  return [
    ['polls', sum('evalwatch_polls_total')],
    ['failed polls', `${sum('evalwatch_poll_failures_total')} (${failed.join(', ')})`],
    ['listings served whole', `${journal.length}, the slowest in ${slowest} ms`],
    ['anomalous items', sum('evalwatch_item_anomalies_total')],
    ['requests sent again', sum('evalwatch_api_retries_total')],
    ['transitions', transitions.length],
    ['lines of gone prompts', count('prompt.gone')],
    ['failures', `${failures.length}, ${failures.filter((row) => !row.settled).length} pending`],
    [
      'lines of failures',
      `${toldIds.length}, ${toldIds.length - new Set(toldIds.map((line) => line.transition_id)).size} repeated`,
    ],
    ['lines of transitions', count('prompt.transition') + count('dataset.transition')],
    ['kills', runs.filter(({ killed }) => killed).length],
    ['scraped daemons', scrapes.length],
    ['differences', differences.length],
  ];
}
