import { expect, it } from 'vitest';
import { SECTIONS } from '../../../scripts/metrics-doc/facts.ts';
import { METRICS, WORKER_METRICS } from '../../support/metrics-table.ts';

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
