/** Writes config/grafana/dashboards/evalwatch.json; with --check only tells, by its exit code, whether it is current. */
import { evalwatchDashboard } from './dashboard/dashboard.ts';
import { writeOrCheck } from './generated-file.ts';

await writeOrCheck(
  'config/grafana/dashboards/evalwatch.json',
  JSON.stringify(evalwatchDashboard()),
);
