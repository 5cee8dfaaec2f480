import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { USEFUL_QUERIES } from '../../../scripts/metrics-doc/queries.ts';
import { labelPairs, labelsOfSeries, scrapeOf } from '../../support/full-scrape.ts';
import { CONFIG, RUNBOOKS, alerts, groups, recordings } from './rules-file.ts';

// promtool checks the syntax of every query, and the rules on the series of their tests (npm run rules). These tests compare
// the names of metrics and labels with those of a scrape in which every metric has every label.

const scraped = labelsOfSeries(await scrapeOf('everything happened'));
const recorded = new Set(recordings.map(({ record }) => record));
/** Labels that Prometheus, Alertmanager or a query makes. */
const MADE = 'job instance alertname alertstate severity cause window objective page'.split(' ');
const labels = new Set([...MADE, ...[...scraped.values()].flatMap((own) => [...own])]);

interface Dashboard {
  readonly panels: readonly {
    readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
    readonly links?: readonly { readonly title: string }[];
  }[];
  readonly templating: {
    readonly list: readonly {
      readonly name: string;
      readonly query: string;
      readonly regex?: string;
    }[];
  };
}

const dashboard = JSON.parse(
  readFileSync(join(CONFIG, 'grafana/dashboards/evalwatch.json'), 'utf8'),
) as Dashboard;

const QUERIES: readonly (readonly [place: string, query: string])[] = [
  ...recordings.map(({ record, expr }) => [record, expr] as const),
  ...alerts.map(({ alert, expr }) => [alert, expr] as const),
  ...alerts.flatMap(({ alert, annotations }) =>
    [...JSON.stringify(annotations).matchAll(/printf \\"(.*?)\\" /g)].map(
      ([, query = '']) =>
        [`the text of ${alert}`, query.replaceAll(/%(?:\[\d\])?[qs]/g, '""')] as const,
    ),
  ),
  ...dashboard.panels.flatMap(({ targets = [] }) =>
    targets.map(({ expr, legendFormat }) => [`the panel of ${legendFormat}`, expr] as const),
  ),
  ...dashboard.templating.list.map(({ name, query }) => [`the variable ${name}`, query] as const),
  ...USEFUL_QUERIES.map(({ question, query }) => [question, query] as const),
  ...readdirSync(RUNBOOKS).flatMap((file) =>
    [...readFileSync(join(RUNBOOKS, file), 'utf8').matchAll(/```promql\n([\s\S]*?)```/g)].map(
      ([, query = '']) => [file, query] as const,
    ),
  ),
];

it('every query is about metrics and labels that exist', () => {
  expect(QUERIES.length).toBeGreaterThan(230);
  const unknown = QUERIES.flatMap(([place, query]) =>
    unknownNamesIn(query).map((name) => `${place}: ${name}`),
  );
  expect(unknown).toEqual([]);
});

it('the rules are tested on series that exist', () => {
  const folder = join(CONFIG, 'prometheus');
  const texts = readdirSync(folder)
    .filter((file) => file.endsWith('.test.yml'))
    .map((file) => readFileSync(join(folder, file), 'utf8'));
  const series = texts.flatMap((text) =>
    [...text.matchAll(/\{ series: '(evalwatch_.+?)', values:/g)].map(([, one = '']) => one),
  );
  expect(series.length).toBeGreaterThan(700);
  const unknown = series.filter((one) => {
    const own = scraped.get(one.replace(/\{.*/s, ''));
    const named = labelPairs(one).map(([label]) => label);
    return named.some((label) => !MADE.includes(label) && !own?.has(label)) || own === undefined;
  });
  expect(unknown).toEqual([]);
});

it('no rule reads a recording of another group, whose evaluation time may differ', () => {
  expect(groups.length).toBeGreaterThan(1);
  for (const { rules } of groups) {
    const own = new Set(rules.flatMap((rule) => ('record' in rule ? [rule.record] : [])));
    const read = rules.flatMap(({ expr }) => metricsIn(expr)).filter((name) => recorded.has(name));
    expect(read.filter((name) => !own.has(name))).toEqual([]);
  }
});

it('every recording is used by a rule or by the text of an alert', () => {
  const used = new Set(QUERIES.flatMap(([, query]) => metricsIn(query)));
  expect([...recorded].filter((name) => !used.has(name))).toEqual([]);
});

it('the legends of the dashboard name labels that exist', () => {
  const named = dashboard.panels
    .flatMap(({ targets = [] }) => targets)
    .flatMap(({ legendFormat }) => [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)])
    .map(([, label = '']) => label);
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((label) => !labels.has(label))).toEqual([]);
});

it('the dashboard links the runbook of every alert', () => {
  const linked = dashboard.panels
    .flatMap(({ links = [] }) => links)
    .map(({ title }) => title.replace('Runbook: ', ''));
  expect(new Set(linked)).toEqual(new Set(alerts.map(({ alert }) => alert)));
});

it.each([
  ['project', 'evalwatch_project_up{a_project="x", project="checkout-bot"} 1 1790', 'checkout-bot'],
  [
    'page',
    '{external_url="https://e.example",page="https://e.example/p/"} 1',
    'https://e.example/p/',
  ],
  ['page', '{page="?var-project="} 1 1790000000000', '?var-project='],
])('the variable %s of the dashboard is read from the answer %s', (variable, answer, value) => {
  const { regex = '' } = dashboard.templating.list.find(({ name }) => name === variable) ?? {};
  expect(new RegExp(regex.slice(1, -1)).exec(answer)?.[1]).toBe(value);
});

/** Returns the metrics of evalwatch, of its process, and those that rules record. */
function metricsIn(query: string): readonly string[] {
  const names =
    query.replaceAll(/"(?:[^"\\]|\\.)*"|\[[^\]]*\]/g, '""').match(/[a-zA-Z_][\w:]*/g) ?? [];
  return names.filter((name) => /^(?:evalwatch|nodejs|process)_|:/.test(name));
}

/** Returns metrics that do not exist, and labels that no metric, or not the metric beside them, has. */
function unknownNamesIn(query: string): readonly string[] {
  const text = query.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""');
  const metrics = metricsIn(text).filter((name) => !scraped.has(name) && !recorded.has(name));
  const named = [...text.matchAll(/\b(?:by|without|on|ignoring|group_left) \(([^)]*)\)/g)].flatMap(
    ([, list = '']) => list.match(/\w+/g) ?? [],
  );
  const matched = [...text.matchAll(/([\w:]+)\{([^{}]*)\}/g)].map(
    ([, metric = '', matchers = '']) => [metric, matchers.match(/\w+(?=\s*[=!])/g) ?? []] as const,
  );
  const grouped = [...text.matchAll(/\bby \(([^)]*)\) \(\s*(?:\w+\(\s*)?([\w:]+)/g)].map(
    ([, list = '', metric = '']) => [metric, list.match(/\w+/g) ?? []] as const,
  );
  const misplaced = [...matched, ...grouped].flatMap(([metric, own]) => {
    const known = scraped.get(metric) ?? labels;
    return own
      .filter((label) => !known.has(label) && !MADE.includes(label))
      .map((label) => `${metric}{${label}}`);
  });
  return [...metrics, ...named.filter((label) => !labels.has(label)), ...misplaced];
}
