import { expect, it } from 'vitest';
import { resultLabels, selectorsOf } from '../../support/promql.ts';

const LABELS: Readonly<Record<string, readonly string[]>> = {
  a: ['project', 'status'],
  b: ['project', 'instance'],
  c_bucket: ['project', 'le'],
};

function labelsOf(metric: string): ReadonlySet<string> | undefined {
  const labels = LABELS[metric];
  return labels && new Set(labels);
}

it.each([
  ['1 + time()', ''],
  ['vector(0)', ''],
  ['a{status="x"} > bool 2', 'project status'],
  ['-rate(a[5m] offset 1d)', 'project status'],
  ['max_over_time(a[1h:1m]) @ 5', 'project status'],
  ['sum(a)', ''],
  ['sum by (project) (a)', 'project'],
  ['sum(a) by (project)', 'project'],
  ['max without (status) (a)', 'project'],
  ['topk by (project) (3, a)', 'project status'],
  ['histogram_quantile(0.5, c_bucket)', 'project'],
  ['label_replace(a, "new", "$1", "status", "(.*)")', 'new project status'],
  ['absent(b{instance="x"})', 'instance'],
  ['a and on (project) b', 'project status'],
  ['a unless ignoring (status, instance) b', 'project status'],
  ['a or b', 'instance project status'],
  ['a / on (project) sum by (project) (b)', 'project'],
  ['a / on (project) group_left (instance) b', 'instance project status'],
  ['sum by (project) (a) / sum by (project) (b) # both', 'project'],
])('%s has the labels %j', (query, expected) => {
  expect([...resultLabels(query, labelsOf)].toSorted().join(' ')).toBe(expected);
});

it.each([
  ['sum(a', 'syntax error'],
  ['a b', 'syntax error'],
  ['no_function(a)', 'syntax error'],
  ['{project="x"}', 'a selector without a metric'],
  ['nothing', 'no metric nothing'],
  ['a{instance="x"}', 'no label instance in a'],
  ['sum by (le) (a)', 'no label le'],
  ['sum without (le) (a)', 'no label le'],
  ['sum by (status) (sum by (project) (a))', 'no label status'],
  ['sum(1)', 'nothing to aggregate'],
  ['a / b', 'never matches'],
  ['a and b', 'never matches'],
  ['a / on (status) b', 'no label status'],
  ['a or on (status) b', 'no label status'],
  ['histogram_quantile(0.5, a)', 'no label le'],
])('%s is refused: %s', (query, message) => {
  expect(() => resultLabels(query, labelsOf)).toThrow(message);
});

it('selectorsOf returns the innermost aggregation around each selector', () => {
  const query = 'sum(max by (project) (a - min_over_time(a[1h]))) / sum(b) + a';
  expect(selectorsOf(query).map(({ aggregation }) => aggregation)).toEqual([
    'max',
    'max',
    'sum',
    undefined,
  ]);
});
