import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { pageAddress, told as gaugeOf } from '../../../scripts/dashboard/queries.ts';
import { debianTool } from '../../support/debian-tool.ts';
import { knownLabels } from '../../support/known-labels.ts';
import { METRICS, WORKER_METRICS } from '../../support/metrics-table.ts';
import { resultLabels, selectorsOf } from '../../support/promql.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { alerts, recordings } from '../prometheus/rules-file.ts';
import { dashboard, interpolated, queries } from './dashboard-file.ts';

const labelsOf = await knownLabels();
const ALL = [...METRICS, ...WORKER_METRICS];
const facts = new Map(ALL.map((fact) => [fact.name, fact]));

/** Metric that filters queries. It is not shown, so neither replicas nor chosen projects matter. */
const TEAM_FILTER = 'evalwatch_project_info';

function factOf(name: string) {
  return facts.get(name) ?? facts.get(name.replace(/_(bucket|sum|count)$/, ''));
}

describe('the dashboard', () => {
  it.each(queries)('$title, $refId: uses only existing metrics and labels', ({ expr, legend }) => {
    const labels = resultLabels(expr, labelsOf);
    const named = legend.matchAll(/\{\{(\w+)\}\}/g).map(([, label]) => label);
    expect([...named].filter((label) => !labels.has(label ?? ''))).toEqual([]);
  });

  it.each(queries.filter(({ type }) => type !== 'table'))(
    '$title, $refId: has a different name for each series',
    ({ expr, legend }) => {
      const unnamed = [...resultLabels(expr, labelsOf)].filter(
        (label) => !legend.includes(`{{${label}}}`),
      );
      expect(unnamed).toEqual([]);
    },
  );

  it.each(queries)(
    '$title, $refId: aggregates over replicas by the type of each metric',
    ({ expr }) => {
      const wrong = selectorsOf(expr).filter(({ metric, aggregation }) => {
        const fact = factOf(metric);
        if (metric === TEAM_FILTER && aggregation !== undefined) return false;
        if (fact === undefined) return aggregation === undefined;
        const addsUp = fact.from === 'process' && fact.type !== 'gauge';
        // An increase is the maximum of all owners minus their minimum.
        if (fact.type === 'counter' && !addsUp && aggregation === 'min') return false;
        return aggregation !== (addsUp ? 'sum' : 'max');
      });
      expect(wrong).toEqual([]);
    },
  );

  it.each(queries)('$title, $refId: filters by the selected projects', ({ expr }) => {
    const unchosen = selectorsOf(expr).filter(
      ({ metric, labels }) =>
        metric !== TEAM_FILTER && labelsOf(metric)?.has('project') && !labels.includes('project'),
    );
    expect(unchosen).toEqual([]);
  });

  it.each(queries)(
    '$title, $refId: filters by the selected teams if it is about projects',
    ({ expr }) => {
      const selectors = selectorsOf(expr);
      const isAboutProjects = selectors.some(({ metric }) => labelsOf(metric)?.has('project'));
      const isFiltered = selectors.some(
        ({ metric, labels }) => metric === TEAM_FILTER && labels.includes('team'),
      );
      expect(isFiltered).toBe(isAboutProjects);
    },
  );

  it('shows every metric of evalwatch', () => {
    const shown = new Set(
      queries.flatMap(({ expr }) => selectorsOf(expr)).map(({ metric }) => metric),
    );
    const base = new Set([...shown].map((metric) => factOf(metric)?.name));
    expect(ALL.filter(({ name }) => !base.has(name)).map(({ name }) => name)).toEqual([]);
  });

  it.each(dashboard.templating.list.filter(({ type }) => type === 'query'))(
    'queries the values of $name from existing metrics and labels',
    ({ name, query }) => {
      const [, metric = '', label = ''] = /^label_values\((\w+), (\w+)\)$/.exec(query) ?? [];
      const [, expr = metric] = /^query_result\((.+)\)$/.exec(query) ?? [];
      expect(resultLabels(interpolated(expr), labelsOf)).toContain(label || name);
    },
  );
});

describe('the rules', () => {
  it.each(recordings)('$record: uses only existing metrics and labels', ({ expr }) => {
    expect(() => resultLabels(expr, labelsOf)).not.toThrow();
  });

  it.each(alerts)(
    '$alert: uses existing metrics and labels, and only its own labels in annotations',
    (rule) => {
      const own = resultLabels(rule.expr, labelsOf).union(new Set(Object.keys(rule.labels)));
      const told = Object.values(rule.annotations).flatMap((text) => [
        ...text.matchAll(/\$labels\.(\w+)/g),
      ]);
      expect(told.map(([, label]) => label).filter((label) => !own.has(label ?? ''))).toEqual([]);
    },
  );
});

const promtool = debianTool('prometheus', 'promtool') ?? '';

describe.skipIf(promtool === '')('the selected teams', () => {
  const up = (project: string) => ({
    series: series('evalwatch_project_up', { project }),
    values: '1',
  });
  const info = (project: string, team: string) => ({
    series: series('evalwatch_project_info', { project, team }),
    values: '1',
  });
  const ups = ['a', 'b', 'c'].map(up);
  const infos = [info('a', 'search'), info('b', 'ads'), info('c', '')];

  it.each([
    ['all teams', '.*', [...ups, ...infos], ['a', 'b', 'c']],
    ['one', 'search', [...ups, ...infos], ['a']],
    ['two', '(search|ads)', [...ups, ...infos], ['a', 'b']],
    ['all teams, before there is any', '.*', ups, ['a', 'b', 'c']],
  ])('restrict the projects of a query: %s', async (_, team, input_series, projects) => {
    const expr = interpolated(gaugeOf('project', 'evalwatch_project_up'), team);
    const exp_samples = projects.map((project) => ({ labels: series('', { project }), value: 1 }));
    expect(await evaluated(expr, input_series, exp_samples)).toContain('SUCCESS');
  });
});

describe.skipIf(promtool === '')('the address of the project pages', () => {
  const up = (project: string, instance: string) => ({
    series: series('evalwatch_project_up', { project, instance }),
    values: '1',
  });
  const web = (instance: string, external_url: string) => ({
    series: series('evalwatch_web_info', { instance, external_url }),
    values: '1',
  });
  const one = 'https://one.example/watch';
  const two = 'https://two.example';

  it.each([
    ['one daemon', '.*', [up('a', '1'), web('1', one)], one],
    ['one daemon without an address', '.*', [up('a', '1')], undefined],
    ['no daemon', '.*', [], undefined],
    ['two replicas', '.*', [up('a', '1'), up('a', '2'), web('1', one), web('2', one)], one],
    ['two daemons', '.*', [up('a', '1'), up('b', '2'), web('1', one), web('2', two)], undefined],
    ['a project of one', 'b', [up('a', '1'), up('b', '2'), web('1', one), web('2', two)], two],
    ['two daemons, one address', '.*', [up('a', '1'), up('b', '2'), web('1', one)], undefined],
    ['a project of the one with it', 'a', [up('a', '1'), up('b', '2'), web('1', one)], one],
    ['a project of the other', 'b', [up('a', '1'), up('b', '2'), web('1', one)], undefined],
  ])('is resolved for %s', async (_, project, input_series, external_url) => {
    const labels =
      external_url === undefined
        ? { page: '?var-project=' }
        : { external_url, page: `${external_url}/projects/` };
    const expr = interpolated(pageAddress(), '.*', project);
    const exp_samples = [{ labels: series('', labels), value: 1 }];
    expect(await evaluated(expr, input_series, exp_samples)).toContain('SUCCESS');
  });
});

function series(metric: string, labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${value}"`);
  return `${metric}{${pairs.join(',')}}`;
}

/** Returns what promtool prints for an expression that must have these samples. */
async function evaluated(
  expr: string,
  input_series: readonly object[],
  exp_samples: readonly object[],
): Promise<string> {
  const promql_expr_test = [{ expr, eval_time: '0', exp_samples }];
  await using directory = await temporaryDirectory();
  const file = join(directory.path, 'expression.test.yml');
  await writeFile(file, stringify({ tests: [{ input_series, promql_expr_test }] }));
  const { stdout } = await promisify(execFile)(promtool, ['test', 'rules', file]);
  return stdout;
}

it.skipIf(promtool === '')('Prometheus accepts every query of the dashboard', async () => {
  const rules = queries.map(({ expr }, index) => ({ record: `query:${index}`, expr }));
  await using directory = await temporaryDirectory();
  const file = join(directory.path, 'queries.yml');
  await writeFile(file, stringify({ groups: [{ name: 'dashboard', rules }] }));
  const { stdout } = await promisify(execFile)(promtool, ['check', 'rules', file]);
  expect(stdout).toContain('SUCCESS');
});
