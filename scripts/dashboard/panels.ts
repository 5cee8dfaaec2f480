import type { Status } from '../../src/domain/status.ts';
import type { Builder, Dataquery } from '@grafana/grafana-foundation-sdk/cog';
import type { DataSourceRef } from '@grafana/grafana-foundation-sdk/common';
import {
  DashboardLinkType,
  ThresholdsConfigBuilder,
  ThresholdsMode,
  type DashboardLink,
  type DynamicConfigValue,
  type Panel,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder } from '@grafana/grafana-foundation-sdk/prometheus';

export const RUNBOOKS = 'https://github.com/evalwatch/evalwatch/blob/main/docs/runbooks';

export const DATASOURCE: DataSourceRef = { type: 'prometheus', uid: '${datasource}' };

export interface About {
  readonly title: string;
  readonly description: string;
  /** One of Grafana's units. */
  readonly unit: string;
  /** In columns of 24. */
  readonly width: number;
  readonly height?: number;
  /** Alerts that fire of what is shown here; their runbooks are linked. */
  readonly alerts?: readonly string[];
}

/** A query and how its series are called; labels as `{{label}}`. */
export type Query = readonly [legend: string, expr: string];

/** What every panel can be given, whatever it draws. */
interface PanelLike extends Builder<Panel> {
  title(title: string): this;
  description(description: string): this;
  unit(unit: string): this;
  datasource(datasource: DataSourceRef): this;
  span(width: number): this;
  height(height: number): this;
  links(links: Builder<DashboardLink>[]): this;
  targets(targets: Builder<Dataquery>[]): this;
  id(id: number): this;
}

/** A heading and what is below it, left to right, line by line. */
export interface Row {
  readonly title: string;
  readonly panels: readonly Pick<PanelLike, 'build' | 'id'>[];
}

/** A panel with what all have in common: what it is about, its place and its links. */
export function described<Some extends PanelLike>(panel: Some, about: About): Some {
  const { title, description, unit, width, height = 8, alerts = [] } = about;
  return panel
    .title(title)
    .description(description)
    .unit(unit)
    .datasource(DATASOURCE)
    .span(width)
    .height(height)
    .links(alerts.map((alert) => link(`Runbook: ${alert}`, `${RUNBOOKS}/${alert}.md`)));
}

function link(title: string, url: string): Builder<DashboardLink> {
  const fields = { icon: '', tooltip: '', tags: [], asDropdown: false };
  const kept = { targetBlank: true, includeVars: false, keepTime: false };
  return { build: () => ({ title, url, type: DashboardLinkType.Link, ...fields, ...kept }) };
}

/** The queries of a panel, named A, B and so on. */
export function targetsOf(queries: readonly Query[]): readonly DataqueryBuilder[] {
  return queries.map(([legend, expr], index) =>
    new DataqueryBuilder()
      .refId(refId(index))
      .datasource(DATASOURCE)
      .expr(expr)
      .legendFormat(legend),
  );
}

/** The letter of the query at this position. */
export function refId(index: number): string {
  return String.fromCodePoint(65 + index);
}

export type Step = readonly [from: number, color: string];

/** Green, and from these values on another colour. */
export function thresholds(...steps: readonly Step[]): ThresholdsConfigBuilder {
  const above = steps.map(([value, color]) => ({ value, color }));
  return new ThresholdsConfigBuilder()
    .mode(ThresholdsMode.Absolute)
    .steps([{ value: null, color: 'green' }, ...above]);
}

const STATUS_COLORS = {
  PENDING: 'yellow',
  RUNNING: 'blue',
  COMPLETED: 'green',
  FAILED: 'red',
  UNKNOWN: 'purple',
  NONE: 'gray',
} satisfies Record<Status, string>;

/** A status has the same colour wherever its series is called by it. */
export function withStatusColors<
  Some extends { overrideByName(name: string, properties: DynamicConfigValue[]): Some },
>(panel: Some): Some {
  for (const [status, fixedColor] of Object.entries(STATUS_COLORS)) {
    panel.overrideByName(status, [{ id: 'color', value: { mode: 'fixed', fixedColor } }]);
  }
  return panel;
}
