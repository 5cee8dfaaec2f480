import type { DynamicConfigValue } from '@grafana/grafana-foundation-sdk/dashboard';
import { PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder as TableBuilder } from '@grafana/grafana-foundation-sdk/table';
import { described, projectPage, refId, targetsOf, type About } from './panels.ts';

export interface Column {
  readonly title: string;
  readonly expr: string;
  /** Format of the column, instead of the unit of the table. */
  readonly properties?: readonly DynamicConfigValue[];
  /** Whether the value of the query is hidden, because only its labels are shown. */
  readonly hidden?: boolean;
}

const PROJECT_ALONE = {
  title: 'This project alone',
  url: '/d/evalwatch?var-project=${__value.raw:percentencode}&${__url_time_range}',
};

/**
 * Shows one row for each current set of labels: first the labels under these titles, then one column for each query.
 * Labels and columns keep the given order. The label `project` links to the page of the project, and to the dashboard
 * for the project alone.
 */
export function table(
  about: About,
  labels: Readonly<Record<string, string>>,
  columns: readonly Column[],
): TableBuilder {
  // The value of a single query has no letter in its name.
  const fields = columns.map((_, index) =>
    columns.length === 1 ? 'Value' : `Value #${refId(index)}`,
  );
  const hidden = fields.filter((_, index) => columns[index]?.hidden);
  const titles = [...Object.values(labels), ...columns.map(({ title }) => title)];
  const names = [...Object.keys(labels), ...fields];
  const panel = described(new TableBuilder(), about)
    .targets(
      targetsOf(columns.map(({ title, expr }) => [title, expr])).map((query) =>
        query.instant().format(PromQueryFormat.Table),
      ),
    )
    .withTransformation({ id: 'merge', options: {} })
    .withTransformation({
      id: 'organize',
      options: {
        excludeByName: Object.fromEntries(['Time', ...hidden].map((name) => [name, true])),
        indexByName: Object.fromEntries(names.map((name, index) => [name, index])),
        renameByName: Object.fromEntries(names.map((name, index) => [name, titles[index]])),
      },
    });
  if (labels['project'] !== undefined) {
    const value = [projectPage('__value.raw'), PROJECT_ALONE];
    panel.overrideByName(labels['project'], [{ id: 'links', value }]);
  }
  for (const { title, properties } of columns) {
    if (properties !== undefined) panel.overrideByName(title, [...properties]);
  }
  return panel;
}

/** Column of ages or durations, in seconds. */
export const SECONDS: readonly DynamicConfigValue[] = [{ id: 'unit', value: 's' }];

/** Column that shows 1 and 0 as words in coloured cells. */
export function yesOrNo(yes: string, no: string): readonly DynamicConfigValue[] {
  return [
    {
      id: 'mappings',
      value: [
        {
          type: 'value',
          options: {
            1: { text: yes, color: 'green', index: 0 },
            0: { text: no, color: 'red', index: 1 },
          },
        },
      ],
    },
    { id: 'custom.cellOptions', value: { type: 'color-background', mode: 'basic' } },
  ];
}
