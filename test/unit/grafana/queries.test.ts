import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { debianTool } from '../../support/debian-tool.ts';
import { knownLabels } from '../../support/known-labels.ts';
import { METRICS, WORKER_METRICS } from '../../support/metrics-table.ts';
import { resultLabels, selectorsOf } from '../../support/promql.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { alerts, recordings } from '../prometheus/rules-file.ts';
import { dashboard, queries } from './dashboard-file.ts';

const labelsOf = await knownLabels();
const ALL = [...METRICS, ...WORKER_METRICS];
const facts = new Map(ALL.map((fact) => [fact.name, fact]));

function factOf(series: string) {
  return facts.get(series) ?? facts.get(series.replace(/_(bucket|sum|count)$/, ''));
}

describe('the dashboard', () => {
  it.each(queries)('$title, $refId: asks for metrics and labels that exist', ({ expr, legend }) => {
    const labels = resultLabels(expr, labelsOf);
    const named = legend.matchAll(/\{\{(\w+)\}\}/g).map(([, label]) => label);
    expect([...named].filter((label) => !labels.has(label ?? ''))).toEqual([]);
  });

  it.each(queries.filter(({ type }) => type !== 'table'))(
    '$title, $refId: series differ in their names',
    ({ expr, legend }) => {
      const unnamed = [...resultLabels(expr, labelsOf)].filter(
        (label) => !legend.includes(`{{${label}}}`),
      );
      expect(unnamed).toEqual([]);
    },
  );

  it.each(queries)('$title, $refId: holds with several replicas', ({ expr }) => {
    const wrong = selectorsOf(expr).filter(({ metric, aggregation }) => {
      const fact = factOf(metric);
      if (fact === undefined) return aggregation === undefined;
      const addsUp = fact.from === 'process' && fact.type !== 'gauge';
      return aggregation !== (addsUp ? 'sum' : 'max');
    });
    expect(wrong).toEqual([]);
  });

  it.each(queries)('$title, $refId: shows the projects chosen', ({ expr }) => {
    const unchosen = selectorsOf(expr).filter(
      ({ metric, labels }) => labelsOf(metric)?.has('project') && !labels.includes('project'),
    );
    expect(unchosen).toEqual([]);
  });

  it('shows every metric of evalwatch', () => {
    const shown = new Set(
      queries.flatMap(({ expr }) => selectorsOf(expr)).map(({ metric }) => metric),
    );
    const base = new Set([...shown].map((metric) => factOf(metric)?.name));
    expect(ALL.filter(({ name }) => !base.has(name)).map(({ name }) => name)).toEqual([]);
  });

  it('finds its projects by a metric and a label that exist', () => {
    const [, metric = '', label = ''] =
      dashboard.templating.list
        .map(({ query }) => /^label_values\((\w+), (\w+)\)$/.exec(query))
        .find((match) => match !== null) ?? [];
    expect([...(labelsOf(metric) ?? [])]).toContain(label);
  });
});

describe('the rules', () => {
  it.each(recordings)('$record: asks for metrics and labels that exist', ({ expr }) => {
    expect(() => resultLabels(expr, labelsOf)).not.toThrow();
  });

  it.each(alerts)('$alert: asks for what exists and tells what it has', (rule) => {
    const own = resultLabels(rule.expr, labelsOf).union(new Set(Object.keys(rule.labels)));
    const told = Object.values(rule.annotations).flatMap((text) => [
      ...text.matchAll(/\$labels\.(\w+)/g),
    ]);
    expect(told.map(([, label]) => label).filter((label) => !own.has(label ?? ''))).toEqual([]);
  });
});

const promtool = debianTool('prometheus', 'promtool') ?? '';

it.skipIf(promtool === '')('Prometheus takes every query of the dashboard', async () => {
  const rules = queries.map(({ expr }, index) => ({ record: `query:${index}`, expr }));
  await using directory = await temporaryDirectory();
  const file = join(directory.path, 'queries.yml');
  await writeFile(file, stringify({ groups: [{ name: 'dashboard', rules }] }));
  const { stdout } = await promisify(execFile)(promtool, ['check', 'rules', file]);
  expect(stdout).toContain('SUCCESS');
});
