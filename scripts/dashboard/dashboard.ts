import {
  DashboardBuilder,
  DashboardCursorSync,
  DatasourceVariableBuilder,
  QueryVariableBuilder,
  RowBuilder,
  VariableHide,
  VariableRefresh,
  VariableSort,
  type Dashboard,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { DATASOURCE, PAGE_VARIABLE } from './panels.ts';
import { ofTeams, pageAddress } from './queries.ts';
import { api } from './rows/api.ts';
import { overview } from './rows/overview.ts';
import { poller } from './rows/poller.ts';
import { processes } from './rows/process.ts';
import { statuses } from './rows/statuses.ts';
import { store } from './rows/store.ts';
import { waiting } from './rows/waiting.ts';

const ROWS = [overview, statuses, waiting, api, poller, store, processes];

/** Start of the address of a project's page. The URL of the dashboard cannot set it, and so cannot redirect the links. */
const page = new QueryVariableBuilder(PAGE_VARIABLE)
  .datasource(DATASOURCE)
  .refresh(VariableRefresh.OnTimeRangeChanged)
  .hide(VariableHide.HideVariable)
  .query(`query_result(${pageAddress()})`)
  .regex('/\\bpage="([^"]*)"/');

/** Builds the dashboard of evalwatch, ready to be written as JSON. Every call returns the same. */
export function evalwatchDashboard(): Dashboard {
  const dashboard = new DashboardBuilder('evalwatch')
    .uid('evalwatch')
    .description('Prompts and datasets that evalwatch watches, and the health of evalwatch itself.')
    .tags(['evalwatch'])
    .time({ from: 'now-6h', to: 'now' })
    .refresh('30s')
    .tooltip(DashboardCursorSync.Crosshair)
    .withVariable(
      new DatasourceVariableBuilder('datasource').label('Prometheus').type('prometheus'),
    )
    .withVariable(choice('team').label('Team').query('label_values(evalwatch_project_info, team)'))
    .withVariable(
      choice('project')
        .label('Project')
        .query(`query_result(${ofTeams('last_over_time(evalwatch_project_up[$__range])')})`)
        .regex('/\\bproject="([^"]*)"/'),
    )
    .withVariable({ build: () => ({ ...page.build(), skipUrlSync: true }) });
  let id = 0;
  for (const { title, panels } of ROWS) {
    dashboard.withRow(new RowBuilder(title).id((id += 1)));
    for (const panel of panels) dashboard.withPanel(panel.id((id += 1)));
  }
  return dashboard.build();
}

/** Lets users choose one, several or all values of a label. */
function choice(name: string): QueryVariableBuilder {
  return (
    new QueryVariableBuilder(name)
      .datasource(DATASOURCE)
      .refresh(VariableRefresh.OnTimeRangeChanged)
      // oxlint-disable-next-line unicorn/no-array-sort -- not an array
      .sort(VariableSort.AlphabeticalAsc)
      .multi(true)
      .includeAll(true)
      // Without this, queries would list every value, and leave out projects without a team.
      .allValue('.*')
      .current({ selected: true, text: ['All'], value: ['$__all'] })
  );
}
