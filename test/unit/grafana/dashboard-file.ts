import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = join(import.meta.dirname, '../../..');
export const DASHBOARD_PATH = 'config/grafana/dashboards/evalwatch.json';
export const dashboardText = readFileSync(join(ROOT, DASHBOARD_PATH), 'utf8');

type DataSource = { readonly type: string; readonly uid: string };

interface Target {
  readonly datasource: DataSource;
  readonly refId: string;
  readonly expr: string;
  readonly legendFormat: string;
}

export interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description: string;
  readonly gridPos: {
    readonly x: number;
    readonly y: number;
    readonly w: number;
    readonly h: number;
  };
  readonly fieldConfig: { readonly defaults: { readonly unit?: string } };
  readonly datasource: DataSource;
  readonly links: readonly { readonly title: string; readonly url: string }[];
  readonly targets: readonly Target[];
  readonly transformations?: readonly object[];
}

interface Variable {
  readonly name: string;
  readonly type: string;
  readonly query: string;
  readonly multi: boolean;
  readonly includeAll: boolean;
  readonly regex?: string;
}

export const dashboard = JSON.parse(dashboardText) as {
  readonly schemaVersion: number;
  readonly uid: string;
  readonly templating: { readonly list: readonly Variable[] };
  readonly panels: readonly Panel[];
};

export const rows = dashboard.panels.filter(({ type }) => type === 'row');
export const panels = dashboard.panels.filter(({ type }) => type !== 'row');

/** Every query of a panel as Prometheus gets it, with the variables replaced. */
export const queries = panels.flatMap(({ title, type, targets }) =>
  targets.map(({ refId, expr, legendFormat }) => ({
    title,
    type,
    refId,
    legend: legendFormat,
    expr: interpolated(expr),
  })),
);

/** Replaces the variables of a query as Grafana does. */
export function interpolated(expr: string, team = '.*', project = '.*'): string {
  return expr
    .replaceAll('$team', team)
    .replaceAll('$project', project)
    .replaceAll('$__rate_interval', '1m')
    .replaceAll('$__range', '6h');
}
