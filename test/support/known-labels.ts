import { recordings } from '../unit/prometheus/rules-file.ts';
import { labelsOfSeries, scrapeOf } from './full-scrape.ts';
import { resultLabels, type LabelsOf } from './promql.ts';

/** Labels that Prometheus adds to every scraped series. */
const TARGET = ['job', 'instance'];
/** Labels of the series ALERTS and ALERTS_FOR_STATE. */
const ALERT = [
  'alertname',
  'severity',
  'cause',
  'project',
  'team',
  'status',
  'error_id',
  ...TARGET,
];

/**
 * Returns the labels of every metric that a query can select: those of a real scrape, of Prometheus itself, and of the
 * recording rules.
 */
export async function knownLabels(): Promise<LabelsOf> {
  const known = new Map<string, ReadonlySet<string>>([
    ['up', new Set(TARGET)],
    ['ALERTS', new Set(['alertstate', ...ALERT])],
    ['ALERTS_FOR_STATE', new Set(ALERT)],
  ]);
  for (const [name, labels] of labelsOfSeries(await scrapeOf('everything happened'))) {
    known.set(name, labels.union(new Set(TARGET)));
  }
  const labelsOf: LabelsOf = (metric) => known.get(metric);
  // A rule can read series of an earlier evaluation, so the record names must do until the expressions are known.
  for (const { record } of recordings) known.set(record, labelsInName(record));
  for (const { record, expr, labels } of recordings) {
    known.set(record, resultLabels(expr, labelsOf).union(new Set(Object.keys(labels ?? {}))));
  }
  return labelsOf;
}

/** Returns the labels at the start of a recorded series' name, as in `project_from_to:metric:max`. */
function labelsInName(record: string): ReadonlySet<string> {
  const [level = '', ...rest] = record.split(':');
  return new Set(rest.length < 2 ? [] : level.match(/error_id|[a-z]+/g));
}
