import type { DynamicConfigValue } from '@grafana/grafana-foundation-sdk/dashboard';
import { PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder as TableBuilder } from '@grafana/grafana-foundation-sdk/table';
import { described, refId, targetsOf, type About } from './panels.ts';

export interface Column {
  readonly title: string;
  readonly expr: string;
  /** Shown like this instead of in the unit of the table. */
  readonly properties?: readonly DynamicConfigValue[];
  /** Only its labels matter. */
  readonly hidden?: boolean;
}

/**
 * One row for each set of labels now: first the labels, under these titles, then a column for each query. Labels and
 * the rest of the columns come in the order in which they are given.
 */
export function table(
  about: About,
  labels: Readonly<Record<string, string>>,
  columns: readonly Column[],
): TableBuilder {
  // A query that has no other beside it has no letter in the name of its value.
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
  for (const { title, properties } of columns) {
    if (properties !== undefined) panel.overrideByName(title, [...properties]);
  }
  return panel;
}

/** A column of ages or durations, in seconds. */
export const SECONDS: readonly DynamicConfigValue[] = [{ id: 'unit', value: 's' }];

/** A column of 1 and 0 in words, the cells coloured. */
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
