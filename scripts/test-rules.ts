/**
 * Checks what evalwatch ships for Prometheus, Alertmanager and Grafana with promtool and amtool: the alert rules with their
 * tests, the queries of the runbooks and of the dashboard, and both configurations. It installs the tools where that is
 * allowed. Without them it fails in CI, and elsewhere says that nothing is checked.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { debianTool, IN_CI } from '../test/support/debian-tool.ts';
import { withTeams, withWebhooks } from '../test/support/team-routes.ts';
import { temporaryDirectory } from '../test/support/temporary.ts';

const ROOT = join(import.meta.dirname, '..');
const PROMETHEUS = join(ROOT, 'config/prometheus');
const ALERTMANAGER = join(ROOT, 'config/alertmanager/alertmanager.yml');

const dashboard = JSON.parse(
  readFileSync(join(ROOT, 'config/grafana/dashboards/evalwatch.json'), 'utf8'),
) as {
  readonly panels: readonly { readonly targets?: readonly { readonly expr: string }[] }[];
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly query: string }[];
  };
};

const promtool = debianTool('prometheus', 'promtool');
const amtool = debianTool('prometheus-alertmanager', 'amtool');

if (promtool === undefined || amtool === undefined) {
  console.error('The alert rules are not tested: promtool and amtool are not installed');
  process.exitCode = IN_CI ? 1 : 0;
} else {
  await using directory = await temporaryDirectory();
  const queries = join(directory.path, 'queries.yml');
  writeFileSync(queries, asRules([...queriesOfRunbooks(), ...queriesOfDashboard()]));
  const variables = join(directory.path, 'variables.test.yml');
  writeFileSync(variables, testsOfVariables());
  const examples = join(directory.path, 'alertmanager.yml');
  const routes = withTeams(readFileSync(ALERTMANAGER, 'utf8'), ['search', 'ads']);
  writeFileSync(examples, withWebhooks(routes, { watchdog: true }));

  run(promtool, 'check', 'rules', join(PROMETHEUS, 'evalwatch.rules.yml'), queries);
  run(promtool, 'check', 'config', join(PROMETHEUS, 'prometheus.yml'));
  run(promtool, 'test', 'rules', ...filesIn(PROMETHEUS, '.test.yml'), variables);
  run(amtool, 'check-config', ALERTMANAGER, examples);
}

function filesIn(folder: string, ending: string): readonly string[] {
  const names = readdirSync(folder).filter((name) => name.endsWith(ending));
  if (names.length === 0) throw new Error(`no file of ${folder} ends with ${ending}`);
  return names.map((name) => join(folder, name));
}

function queriesOfRunbooks(): readonly string[] {
  return filesIn(join(ROOT, 'docs/runbooks'), '.md').flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/```promql\n([\s\S]*?)```/g)].map(
      ([, query = '']) => query,
    ),
  );
}

function queriesOfDashboard(): readonly string[] {
  return dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => chosen(expr)));
}

/** Returns the tests of the dashboard's variables, with the query of each `VARIABLE of NAME=VALUE` in its place. */
function testsOfVariables(): string {
  const text = readFileSync(join(ROOT, 'test/promtool/variables.test.yml'), 'utf8');
  return text.replaceAll(/(\w+) of (team|project)=(\S+)/g, (_, variable, name, value) => {
    const found = dashboard.templating.list.find((one) => one.name === variable)?.query ?? '';
    const [, query = ''] = /^query_result\((.+)\)$/.exec(found) ?? [];
    return JSON.stringify(chosen(query.replaceAll(`$${name}`, value)));
  });
}

/** Returns a query of the dashboard as Grafana sends it when everything is chosen. */
function chosen(query: string): string {
  return query
    .replaceAll(/\$(?:team|project)/g, '.*')
    .replaceAll('$__rate_interval', '1m')
    .replaceAll('$__range', '6h');
}

/** Returns a rules file of these queries: promtool parses no query alone. */
function asRules(queries: readonly string[]): string {
  const rules = queries.map((expr, index) => ({ record: `query:${index}`, expr }));
  return stringify({ groups: [{ name: 'queries', rules }] });
}

/** Runs a check, and shows what it says. A failed one sets the exit code. */
function run(tool: string, ...args: readonly string[]): void {
  // Less garbage collection: the tests of the rules take a quarter less time.
  const env = { ...process.env, GOGC: '800' };
  if (spawnSync(tool, args, { stdio: 'inherit', env }).status !== 0) process.exitCode = 1;
}
