import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { evalwatchDashboard } from '../../../scripts/dashboard/dashboard.ts';
import { formatted } from '../../../scripts/generated-file.ts';
import { FILES_ADDRESS } from '../../../scripts/repository.ts';
import { alerts } from '../prometheus/rules-file.ts';
import {
  DASHBOARD_PATH,
  ROOT,
  dashboard,
  dashboardText,
  panels,
  rows,
  type Panel,
} from './dashboard-file.ts';

it('the dashboard file matches its generator (npm run generate)', async () => {
  const wanted = await formatted(DASHBOARD_PATH, JSON.stringify(evalwatchDashboard()));
  expect(dashboardText).toBe(wanted);
});

it('the dashboard has seven rows and at most 39 panels', () => {
  expect(rows.map(({ title }) => title)).toEqual([
    'Overview',
    'Statuses and failures',
    'Time in state',
    'Evaluation Service',
    'Polls',
    'Store',
    'Process',
  ]);
  expect(panels.length).toBeLessThanOrEqual(39);
});

describe('every panel', () => {
  it.each(panels)('$title has a title, a unit and a description', (panel) => {
    expect(panel.title).toMatch(/^\S/);
    expect(panel.fieldConfig.defaults.unit).toMatch(/^\w+$/);
    expect(panel.description).toMatch(/\.$/);
  });

  it.each(panels)('$title uses the selected data source', (panel) => {
    for (const { datasource } of [panel, ...panel.targets]) {
      expect(datasource).toEqual({ type: 'prometheus', uid: '${datasource}' });
    }
  });

  it('has a unique id and a unique title', () => {
    const all = dashboard.panels;
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
    expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length);
  });

  it('overlaps no other panel, and all together fill the grid', () => {
    const taken = dashboard.panels.flatMap((panel) => cellsOf(panel));
    expect(new Set(taken).size).toBe(taken.length);
    const height = Math.max(...dashboard.panels.map(({ gridPos: { y, h } }) => y + h));
    expect(taken).toHaveLength(24 * height);
  });
});

it('the dashboard links the runbook of every alert, and no missing page', () => {
  const links = panels.flatMap((panel) => panel.links);
  const linked = links.map(({ title }) => title.replace('Runbook: ', ''));
  expect(new Set(linked)).toEqual(new Set(alerts.map(({ alert }) => alert)));
  const missing = links.filter(
    ({ url }) => !existsSync(join(ROOT, url.replace(`${FILES_ADDRESS}/`, ''))),
  );
  expect(missing).toEqual([]);
});

it('the dashboard has variables for the data source and for one, several or all teams and projects', () => {
  const choice = {
    type: 'query',
    multi: true,
    includeAll: true,
    allValue: '.*',
    current: { value: ['$__all'] },
  };
  expect(dashboard.templating.list).toMatchObject([
    { name: 'datasource', type: 'datasource', query: 'prometheus' },
    { ...choice, name: 'team', query: 'label_values(evalwatch_project_info, team)' },
    { ...choice, name: 'project', query: expect.stringMatching(/^query_result\(.+\)$/) },
    { name: 'page', type: 'query', multi: false, hide: 2, skipUrlSync: true },
  ]);
});

it('the dashboard links the page of each project that a table or a chart shows', () => {
  const linking = (url: string) =>
    panels.filter((panel) => JSON.stringify(panel.fieldConfig).includes(JSON.stringify(url)));
  const tables = panels.filter(({ type, transformations }) => {
    return type === 'table' && JSON.stringify(transformations).includes('"project":"Project"');
  });
  const charts = panels.filter(({ targets }) =>
    targets.some(({ legendFormat }) => legendFormat.includes('{{project}}')),
  );
  expect(linking('${page:raw}${__value.raw:percentencode}')).toEqual(tables);
  expect(linking('${page:raw}${__field.labels.project:percentencode}')).toEqual(charts);
  expect([tables.length, charts.length]).toEqual([3, 9]);
});

it.each([
  [
    'project',
    'evalwatch_project_up{a_project="x", instance="y", project="checkout-bot"} 1 1790000000000',
    'checkout-bot',
  ],
  [
    'page',
    '{external_url="https://e.example/watch",page="https://e.example/watch/projects/"} 1 1790000000000',
    'https://e.example/watch/projects/',
  ],
  ['page', '{page="?var-project="} 1 1790000000000', '?var-project='],
])('the variable %s is extracted from the response %s of Prometheus', (variable, answer, value) => {
  const { regex = '' } = dashboard.templating.list.find(({ name }) => name === variable) ?? {};
  expect(new RegExp(regex.slice(1, -1)).exec(answer)?.[1]).toBe(value);
});

/** Returns the cells of Grafana's grid, 24 wide, that a panel covers. */
function cellsOf({ gridPos: { x, y, w, h } }: Panel): readonly string[] {
  return Array.from(
    { length: w * h },
    (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`,
  );
}
