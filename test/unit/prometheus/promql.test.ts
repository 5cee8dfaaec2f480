import { expect, it } from 'vitest';
import { groupingLabelsOf, selectorsOf } from '../../support/promql.ts';

it.each([
  ['up', ['up']],
  ['up{job="a b"} == bool 0', ['up job']],
  ['absent(up{job=~"a|b",instance!="c"})', ['up job instance']],
  ['sum by (le) (rate(x_bucket[5m])) > 1e3', ['x_bucket']],
  ['a:b:max / on (project) group_left (to) c{to="}"} offset 1d', ['a:b:max', 'c to']],
  ['time() - max_over_time(x[1h:1m]) > 2 * y + 300', ['x', 'y']],
  ['label_replace(x, "a", "$1", "b", "or y")', ['x']],
  ['x # and y\nunless z', ['x', 'z']],
])('the selectors of %s are %j', (expression, expected) => {
  expect(
    selectorsOf(expression).map(({ metric, labels }) => [metric, ...labels].join(' ')),
  ).toEqual(expected);
});

it('groupingLabelsOf returns the labels that an expression groups by', () => {
  expect(groupingLabelsOf('sum by (a, b) (x) / on (a) group_left () sum without (c) (y)')).toEqual([
    'a',
    'b',
    'c',
  ]);
});
