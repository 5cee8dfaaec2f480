/** Writes config/grafana/dashboards/evalwatch.json. With --check it writes nothing and exits 1 when it is out of date. */
import { evalwatchDashboard } from './dashboard/dashboard.ts';
import { writeOrCheck } from './generated-file.ts';

await writeOrCheck(
  'config/grafana/dashboards/evalwatch.json',
  JSON.stringify(evalwatchDashboard()),
);
