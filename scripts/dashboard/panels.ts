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
import { FILES_ADDRESS } from '../repository.ts';

export const RUNBOOKS = `${FILES_ADDRESS}/docs/runbooks`;

export const DATASOURCE: DataSourceRef = { type: 'prometheus', uid: '${datasource}' };

export interface About {
  readonly title: string;
  readonly description: string;
  /** Unit, as Grafana names it. */
  readonly unit: string;
  /** Width in columns; a row has 24. */
  readonly width: number;
  readonly height?: number;
  /** Alerts about the values shown here; the panel links their runbooks. */
  readonly alerts?: readonly string[];
}

/** A query and the name of its series; labels are written `{{label}}`. */
export type Query = readonly [legend: string, expr: string];

/** Methods that every kind of panel has. */
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

/** A heading with the panels below it, from left to right, line by line. */
export interface Row {
  readonly title: string;
  readonly panels: readonly Pick<PanelLike, 'build' | 'id'>[];
}

/** Sets title, description, size and links of a panel. */
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

export function link(title: string, url: string): Builder<DashboardLink> {
  const fields = { icon: '', tooltip: '', tags: [], asDropdown: false };
  const kept = { targetBlank: true, includeVars: false, keepTime: false };
  return { build: () => ({ title, url, type: DashboardLinkType.Link, ...fields, ...kept }) };
}

/** Name of the hidden variable with the address to which the id of a project is appended. */
export const PAGE_VARIABLE = 'page';

/**
 * Returns the link from a project to its page at evalwatch. `id` is the variable that has the id. It opens a new tab,
 * because Grafana would treat the relative address, used without an external_url, as one of its own.
 */
export function projectPage(id: '__value.raw' | '__field.labels.project') {
  const url = `\${${PAGE_VARIABLE}:raw}\${${id}:percentencode}`;
  return { title: 'Page of the project', url, targetBlank: true };
}

/** Returns the queries of a panel, named A, B and so on. */
export function targetsOf(queries: readonly Query[]): readonly DataqueryBuilder[] {
  return queries.map(([legend, expr], index) =>
    new DataqueryBuilder()
      .refId(refId(index))
      .datasource(DATASOURCE)
      .expr(expr)
      .legendFormat(legend),
  );
}

/** Returns the letter of the query at this position. */
export function refId(index: number): string {
  return String.fromCodePoint(65 + index);
}

export type Step = readonly [from: number, color: string];

/** Returns colours: green, and another one from each of these values on. */
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

/** Gives every series that is named by a status the colour of that status. */
export function withStatusColors<
  Some extends { overrideByName(name: string, properties: DynamicConfigValue[]): Some },
>(panel: Some): Some {
  for (const [status, fixedColor] of Object.entries(STATUS_COLORS)) {
    panel.overrideByName(status, [{ id: 'color', value: { mode: 'fixed', fixedColor } }]);
  }
  return panel;
}
