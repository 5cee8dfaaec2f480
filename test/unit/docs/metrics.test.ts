import { expect, it } from 'vitest';
import { SECTIONS } from '../../../scripts/metrics-doc/facts.ts';
import { USEFUL_QUERIES } from '../../../scripts/metrics-doc/queries.ts';
import { knownLabels } from '../../support/known-labels.ts';
import { METRICS, WORKER_METRICS } from '../../support/metrics-table.ts';
import { resultLabels } from '../../support/promql.ts';

const labelsOf = await knownLabels();

it('every metric is documented with its source, the store or the process', () => {
  const said = SECTIONS.flatMap(({ metrics }) => Object.entries(metrics)).map(
    ([name, { source }]) => [name, source],
  );
  const promised = [...METRICS, ...WORKER_METRICS].map(({ name, from }) => [name, from]);
  expect(Object.fromEntries(said)).toEqual({
    ...Object.fromEntries(promised),
    evalwatch_build_info: 'process',
    evalwatch_store_info: 'process',
  });
});

it.each(USEFUL_QUERIES)(
  'the query for "$question" uses only existing metrics and labels',
  ({ query }) => {
    expect(() => resultLabels(query, labelsOf)).not.toThrow();
  },
);
