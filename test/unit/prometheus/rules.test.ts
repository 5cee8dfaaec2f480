import { expect, it } from 'vitest';
import { knownLabels } from '../../support/known-labels.ts';
import { groupingLabelsOf, resultLabels, selectorsOf } from '../../support/promql.ts';
import { exportedMetrics } from './exported.ts';
import { alerts, groups, recordings } from './rules-file.ts';

const labelsOf = await knownLabels();

it('no rule reads a recording of another group, whose evaluation time may differ', () => {
  const recordedBy = new Map(
    groups.flatMap(({ name, rules }) =>
      rules.flatMap((rule) => ('record' in rule ? [[rule.record, name] as const] : [])),
    ),
  );
  const foreign = groups.flatMap(({ name, rules }) =>
    rules
      .flatMap(({ expr }) => selectorsOf(expr))
      .filter(({ metric }) => (recordedBy.get(metric) ?? name) !== name)
      .map(({ metric }) => metric),
  );
  expect(groups.map(({ name }) => name)).toEqual(['evalwatch', 'evalwatch-failures']);
  expect(foreign).toEqual([]);
});

it.each([
  ['EvalwatchWatchdog', '0s', 'none'],
  ['EvalwatchDown', '5m', 'critical'],
  ['EvalwatchAbsent', '10m', 'critical'],
  ['EvalwatchDataStale', '5m', 'critical'],
  ['EvalwatchSchedulerStalled', '5m', 'critical'],
  ['EvalwatchServiceFailing', '3m', 'critical'],
  ['EvalwatchAuthFailing', '5m', 'critical'],
  ['EvalwatchProjectPollFailing', '5m', 'warning'],
  ['EvalwatchPromptFailed', '0s', 'warning'],
  ['EvalwatchDatasetFailed', '0s', 'warning'],
  ['EvalwatchPromptFailureRatioHigh', '0s', 'critical'],
  ['EvalwatchPromptFailureBudgetBurning', '15m', 'warning'],
  ['EvalwatchNewFailureCause', '0s', 'info'],
  ['EvalwatchPromptStuck', '10m', 'warning'],
  ['EvalwatchPromptsMissing', '0s', 'info'],
  ['EvalwatchPromptsVanished', '2m', 'warning'],
  ['EvalwatchUnexpectedItems', '0s', 'warning'],
  ['EvalwatchErrorInfoBacklog', '10m', 'warning'],
  ['EvalwatchStoreWriteFailing', '2m', 'critical'],
  ['EvalwatchStoreWALGrowing', '30m', 'warning'],
  ['EvalwatchSchedulerOverrun', '15m', 'warning'],
  ['EvalwatchConfigReloadFailed', '10m', 'warning'],
  ['EvalwatchCrashLooping', '5m', 'warning'],
  ['EvalwatchProjectsUnowned', '2m', 'critical'],
  ['EvalwatchWorkerLeaseLost', '1m', 'warning'],
])('%s fires after %s with severity %s', (name, wait, severity) => {
  expect(alerts.filter(({ alert }) => alert === name)).toMatchObject([
    { for: wait, labels: { severity } },
  ]);
});

it('the rules contain no other alerts', () => {
  expect(alerts).toHaveLength(25);
});

it.each(alerts)(
  '$alert describes the problem, its project if it has one, and the first step',
  (rule) => {
    const { summary, description } = rule.annotations;
    expect(summary).toMatch(/^\S/);
    expect(description).toMatch(/\. First [a-z]+ /);
    const aboutOne = resultLabels(rule.expr, labelsOf).has('project');
    expect(description.includes('{{ $labels.project }}')).toBe(aboutOne);
  },
);

it.each(alerts)('$alert has the label team exactly if it has the label project', ({ expr }) => {
  const labels = resultLabels(expr, labelsOf);
  expect(labels.has('team')).toBe(labels.has('project'));
});

it.each(alerts)(
  '$alert queries only existing metrics and labels in its description',
  ({ annotations }) => {
    for (const query of queriesIn(annotations.description)) {
      expect(() => resultLabels(query, labelsOf)).not.toThrow();
    }
  },
);

it('the rules use only metrics and labels that are exported or recorded', async () => {
  const exported = await exportedMetrics();
  const recorded = new Set(recordings.map(({ record }) => record));
  const labels = new Set([
    ...[...exported.values()].flatMap((names) => [...names]),
    ...recordings.flatMap(({ expr }) => [...resultLabels(expr, labelsOf)]),
  ]);
  const unknown = [...alerts, ...recordings].flatMap(({ expr }) => [
    ...selectorsOf(expr).flatMap((selector) => {
      if (recorded.has(selector.metric)) return [];
      const known = exported.get(selector.metric);
      if (known === undefined) return [selector.metric];
      return selector.labels
        .filter((label) => !known.has(label))
        .map((label) => `${selector.metric}{${label}}`);
    }),
    ...groupingLabelsOf(expr).filter((label) => !labels.has(label)),
  ]);
  expect(unknown).toEqual([]);
});

it('every recording is used by a rule or by the description of an alert', () => {
  const used = new Set(
    [
      ...[...alerts, ...recordings].map(({ expr }) => expr),
      ...alerts.flatMap(({ annotations }) => queriesIn(annotations.description)),
    ]
      .flatMap((query) => selectorsOf(query))
      .map(({ metric }) => metric),
  );
  expect(recordings.filter(({ record }) => !used.has(record))).toEqual([]);
});

/** Returns the queries of a template, with a text in the place of each variable. */
function queriesIn(template: string): readonly string[] {
  return [...template.matchAll(/printf ("(?:[^"\\]|\\.)*")/g)]
    .map(([, format = '']) =>
      format
        .slice(1, -1)
        .replaceAll(/%(?:\[\d\])?q/g, '"text"')
        .replaceAll(/%\[\d\]s/g, '30m'),
    )
    .filter((query) => query.includes('{'));
}
