import { recordings } from '../unit/prometheus/rules-file.ts';
import { labelsOfSeries, scrapeOf } from './full-scrape.ts';
import { resultLabels, type LabelsOf } from './promql.ts';

/** What a scrape of Prometheus adds to every series. */
const TARGET = ['job', 'instance'];
/** What alerts have. */
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
 * The labels of everything that a query can ask for: what a real scrape shows, what Prometheus itself adds, and what the
 * rules record.
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
  // A rule can read what an earlier evaluation recorded, so the names must do until the expressions are known.
  for (const { record } of recordings) known.set(record, labelsInName(record));
  for (const { record, expr, labels } of recordings) {
    known.set(record, resultLabels(expr, labelsOf).union(new Set(Object.keys(labels ?? {}))));
  }
  return labelsOf;
}

/** The labels that the name of a recorded series begins with, as in `project_from_to:metric:max`. */
function labelsInName(record: string): ReadonlySet<string> {
  const [level = '', ...rest] = record.split(':');
  return new Set(rest.length < 2 ? [] : level.match(/error_id|[a-z]+/g));
}
