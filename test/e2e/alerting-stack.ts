import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { startSimulator } from '../../src/simulator/server.ts';
import type { ErrorInfo } from '../../src/simulator/world/error-info.ts';
import { World } from '../../src/simulator/world/world.ts';
import { startHere } from '../support/daemon-here.ts';
import { workspace } from '../support/evalwatch.ts';
import { freePort } from '../support/free-port.ts';
import { withTeams, withWebhooks } from '../support/team-routes.ts';
import { startAlertmanager } from './alertmanager.ts';
import { startServer } from './server.ts';
import { type Addresses, shipped } from './shipped.ts';
import { startWebhook, type Webhook } from './webhook.ts';

/** Paths. */
export interface Programs {
  readonly prometheus: string;
  readonly alertmanager: string;
}

export interface StackOptions {
  /** Teams that have a route in Alertmanager. */
  readonly teams?: readonly string[];
  /** Options of a project in the configuration of evalwatch. */
  readonly optionsOf?: (project: string) => object;
}

/** A simulated service, evalwatch, Prometheus, Alertmanager and the webhook it pages; `await using` ends them all. */
export interface AlertingStack extends AsyncDisposable {
  readonly webhook: Webhook;
  readonly world: World;
  /** Queries Prometheus. */
  query(expression: string): Promise<readonly number[]>;
  /** Changes the options of the projects and reloads evalwatch. */
  reload(optionsOf: (project: string) => object): Promise<void>;
  /** Lets the one RUNNING prompt of a project fail, by default with a sample error_info. */
  failPrompt(project: string, errorInfo?: ErrorInfo): void;
  revokeKey(project: string): void;
  giveKeyBack(project: string): void;
  /** Resets every connection, of one project or of all, until `mendConnections`. */
  breakConnections(project?: string): void;
  mendConnections(): void;
  /** Returns the description of an alert in Alertmanager; undefined if there is no such alert. */
  description(alertname: string, project: string): Promise<string | undefined>;
  /** Returns the names of the alerts that Alertmanager suppresses. */
  heldBack(): Promise<readonly string[]>;
  stopDaemon(): Promise<void>;
  /** Ends the first 24 hours of every project. The daemon must be stopped. */
  endFirstDay(): void;
  startDaemon(): Promise<void>;
}

/**
 * Starts the stack with the shipped rules and configurations, their times cut to seconds. Each project has its own key and
 * is polled every second.
 */
export async function startAlerting(
  programs: Programs,
  projects: readonly string[],
  { teams = [], optionsOf = () => ({}) }: StackOptions = {},
): Promise<AlertingStack> {
  await using opened = new AsyncDisposableStack();
  const webhook = opened.use(await startWebhook());
  const world = new World({ now: Date.now, projects, promptsPerProject: 0 });
  for (const project of projects)
    world.addPrompt(project, { id: promptOf(project), status: 'RUNNING' });
  const keys = Object.fromEntries(projects.map((project) => [project, keyOf(project)]));
  const simulator = await startSimulator({ world, keys });
  opened.defer(() => simulator.close());

  const addresses = {
    daemon: `127.0.0.1:${await freePort()}`,
    alertmanager: `127.0.0.1:${await freePort()}`,
    webhook: webhook.url,
  };
  const configured = (options: (project: string) => object) => ({
    web: { listen: addresses.daemon },
    projects: projects.map((id) => ({ id, api_key_file: `${id}.key`, ...options(id) })),
  });
  const place = opened.use(await workspace(simulator.url, configured(optionsOf)));
  const { directory } = place;
  for (const id of projects) await writeFile(join(directory, `${id}.key`), keyOf(id));
  let daemon = await startHere(place);
  opened.defer(() => daemon[Symbol.asyncDispose]());
  for (const project of projects) await daemon.line('project.baseline', { project });

  const alertmanager = opened.use(
    await startAlertmanager(
      programs.alertmanager,
      directory,
      addresses.alertmanager,
      await shipped('alertmanager/alertmanager.yml', addresses, (text) =>
        withWebhooks(withTeams(text, teams)),
      ),
    ),
  );
  const prometheus = opened.use(await startPrometheus(programs.prometheus, directory, addresses));
  const all = opened.move();

  return {
    webhook,
    world,
    query: (expression) => prometheus.query(expression),
    reload: async (options) => {
      await place.configure(configured(options));
      await daemon.reload();
    },
    failPrompt: (project, errorInfo) =>
      world.setStatus(project, promptOf(project), 'FAILED', errorInfo),
    revokeKey: (project) => simulator.keys.revoke(keyOf(project)),
    giveKeyBack: (project) => simulator.keys.set(keyOf(project), project),
    breakConnections: (project) =>
      simulator.faults.set([{ fault: { kind: 'reset', when: 'before' }, project }]),
    mendConnections: () => simulator.faults.clear(),
    description: async (alertname, project) => {
      const alerts = await alertmanager.shown();
      return alerts.find(
        ({ labels }) => labels['alertname'] === alertname && labels['project'] === project,
      )?.annotations['description'];
    },
    heldBack: async () => {
      const alerts = await alertmanager.shown();
      return alerts
        .filter(({ status }) => status.state === 'suppressed')
        .map(({ labels }) => labels['alertname'] ?? '');
    },
    stopDaemon: () => daemon.stop(),
    endFirstDay: () => {
      const db = new Database(join(directory, 'evalwatch.db'));
      db.exec('UPDATE project SET configured_at = configured_at - 86400000');
      db.close();
    },
    startDaemon: async () => {
      daemon = await startHere(place);
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Returns the id of the initial prompt of a project. */
export function promptOf(project: string): string {
  return `prompt-of-${project}`;
}

function keyOf(project: string): string {
  return `the-api-key-of-${project}`;
}

async function startPrometheus(
  program: string,
  directory: string,
  addresses: Addresses,
): Promise<AsyncDisposable & Pick<AlertingStack, 'query'>> {
  for (const file of ['prometheus.yml', 'evalwatch.rules.yml']) {
    await writeFile(join(directory, file), await shipped(`prometheus/${file}`, addresses));
  }
  const address = `127.0.0.1:${await freePort()}`;
  const args = [
    `--config.file=${join(directory, 'prometheus.yml')}`,
    `--storage.tsdb.path=${join(directory, 'prometheus')}`,
    `--web.listen-address=${address}`,
    // Alertmanager gets the current text of an alert this often, and resolves an alert that it has not received for 20 s.
    '--rules.alert.resend-delay=5s',
  ];
  const server = await startServer(program, args, `http://${address}/-/ready`);
  return {
    query: async (expression) => {
      const url = `http://${address}/api/v1/query?query=${encodeURIComponent(expression)}`;
      const { data } = (await (await fetch(url)).json()) as {
        data: { result: readonly { value: readonly [number, string] }[] };
      };
      return data.result.map(({ value }) => Number(value[1]));
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}
