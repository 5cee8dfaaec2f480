import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import bcrypt from 'bcrypt';
import Database from 'better-sqlite3';
import { vi } from 'vitest';
import { parse } from 'yaml';
import { answerTo, send } from '../../src/simulator/service.ts';
import { type ErrorInfo, World } from '../../src/simulator/world.ts';
import { makeCertificate } from '../support/certificates.ts';
import { startHere } from '../support/daemon-here.ts';
import { debianTool, IN_CI } from '../support/debian-tool.ts';
import { workspace } from '../support/evalwatch.ts';
import { freePort } from '../support/free-port.ts';
import { errorOf, startService } from '../support/service.ts';
import { withTeams, withWebhooks } from '../support/team-routes.ts';

// The whole way of an alert: a simulated service, evalwatch, Prometheus, Alertmanager, and the webhook that it notifies.

const CONFIG = join(import.meta.dirname, '../../config');
/** Timeout of waits for programs on a busy machine. */
export const PATIENCE = { timeout: 100_000, interval: 100 };

const prometheus = debianTool('prometheus', 'prometheus') ?? '';
const alertmanager =
  debianTool('prometheus-alertmanager', 'prometheus-alertmanager', 'alertmanager') ?? '';
/** Whether both programs are installed. In CI a missing one fails the tests instead of skipping them. */
export const RUNS = (prometheus !== '' && alertmanager !== '') || IN_CI;

export type Labels = Readonly<Record<string, string>>;

/** A simulated service, evalwatch, Prometheus, Alertmanager and the webhook it notifies; `await using` ends them all. */
export type AlertingStack = Awaited<ReturnType<typeof startAlerting>>;

/**
 * Starts the stack with the shipped rules and configurations, their times cut to seconds. Each project has its own key, one
 * RUNNING prompt, and is polled every second. Prometheus scrapes with TLS, a client certificate and a login.
 * @param teams that have routes in Alertmanager
 * @param optionsOf further options of a project in the configuration of evalwatch
 */
export async function startAlerting(
  projects: readonly string[],
  teams: readonly string[],
  optionsOf: (project: string) => object,
) {
  await using opened = new AsyncDisposableStack();
  const webhook = opened.use(await startWebhook());
  const world = new World(projects);
  for (const id of projects) world.addPrompt(id, { id: promptOf(id), status: 'RUNNING' });
  const keys = new Map(projects.map((id) => [keyOf(id), id]));
  let isBroken = false;
  const service = opened.use(
    await startService((_, response) => {
      if (isBroken) response.socket?.destroy();
      else send(response, answerTo(response.req, world, keys));
    }),
  );

  const addresses = {
    daemon: `127.0.0.1:${await freePort()}`,
    alertmanager: `127.0.0.1:${await freePort()}`,
    webhook: webhook.url,
  };
  const place = opened.use(
    await workspace(service.url, {
      web: { listen: addresses.daemon, config_file: 'web.yaml' },
      projects: projects.map((id) => ({ id, api_key_file: `${id}.key`, ...optionsOf(id) })),
    }),
  );
  const { directory } = place;
  for (const id of projects) await writeFile(join(directory, `${id}.key`), keyOf(id));
  const scrape = await protectWeb(directory);
  let daemon = await startHere(place, { speed: 1 });
  opened.defer(() => daemon[Symbol.asyncDispose]());
  for (const project of projects) await daemon.line('project.baseline', { project });

  const manager = opened.use(
    await startAlertmanager(
      directory,
      addresses.alertmanager,
      await shipped('alertmanager/alertmanager.yml', addresses, (text) =>
        withWebhooks(withTeams(text, teams)),
      ),
    ),
  );
  const rules = await shipped('prometheus/evalwatch.rules.yml', addresses);
  await writeFile(join(directory, 'evalwatch.rules.yml'), rules);
  const configuration = await shipped('prometheus/prometheus.yml', addresses, (text) =>
    text.replace(/^ +- job_name: .*\n/m, `$&${scrape}`),
  );
  opened.use(await startPrometheus(directory, configuration));
  const all = opened.move();

  return {
    webhook,
    /** Lets the first prompt of a project fail. */
    failPrompt: (project: string, errorInfo: ErrorInfo = errorOf(promptOf(project))) =>
      world.setStatus(promptOf(project), 'FAILED', errorInfo),
    revokeKey: (project: string) => void keys.delete(keyOf(project)),
    giveKeyBack: (project: string) => void keys.set(keyOf(project), project),
    breakConnections: () => {
      isBroken = true;
    },
    mendConnections: () => {
      isBroken = false;
    },
    /** Returns the alerts in Alertmanager. */
    alerts: () => manager.alerts(),
    stopDaemon: () => daemon.stop(),
    /** Ends the first 24 hours of every project. The daemon must be stopped. */
    endFirstDay: () => {
      const db = new Database(join(directory, 'evalwatch.db'));
      db.exec('UPDATE project SET configured_at = configured_at - 86400000');
      db.close();
    },
    startDaemon: async () => {
      daemon = await startHere(place, { speed: 1 });
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

function promptOf(project: string): string {
  return `prompt-of-${project}`;
}

function keyOf(project: string): string {
  return `the-api-key-of-${project}`;
}

/** Writes web.yaml and its files to a directory. Returns the lines that a scrape then needs in prometheus.yml. */
async function protectWeb(directory: string): Promise<string> {
  const authority = makeCertificate(directory, 'authority');
  makeCertificate(directory, 'server', authority);
  makeCertificate(directory, 'client', authority);
  const password = 'the password of prometheus';
  await writeFile(join(directory, 'password'), password);
  const web = {
    tls_server_config: {
      cert_file: 'server.crt',
      key_file: 'server.key',
      client_auth_type: 'RequireAndVerifyClientCert',
      client_ca_file: 'authority.crt',
    },
    basic_auth_users: { prometheus: bcrypt.hashSync(password, 10).replace('$2b$', '$2y$') },
  };
  await writeFile(join(directory, 'web.yaml'), JSON.stringify(web));
  const tls = { ca_file: 'authority.crt', cert_file: 'client.crt', key_file: 'client.key' };
  const login = { username: 'prometheus', password_file: 'password' };
  return `    scheme: https
    tls_config: ${JSON.stringify(tls)}
    basic_auth: ${JSON.stringify(login)}
`;
}

async function startPrometheus(directory: string, config: string): Promise<AsyncDisposable> {
  const file = join(directory, 'prometheus.yml');
  await writeFile(file, config);
  const address = `127.0.0.1:${await freePort()}`;
  const args = [
    `--config.file=${file}`,
    `--storage.tsdb.path=${join(directory, 'prometheus')}`,
    `--web.listen-address=${address}`,
    // Alertmanager gets the current text of an alert this often, and resolves an alert that it has not received for 20 s.
    '--rules.alert.resend-delay=5s',
  ];
  return await startServer(prometheus, args, `http://${address}/-/ready`);
}

/**
 * Starts Alertmanager and waits until it is ready; `await using` kills it.
 * @param directory for its configuration and its data
 * @param address `host:port`
 * @param config text of its configuration
 */
export async function startAlertmanager(directory: string, address: string, config: string) {
  const file = join(directory, 'alertmanager.yml');
  await writeFile(file, config);
  const args = [
    `--config.file=${file}`,
    `--storage.path=${join(directory, 'alertmanager')}`,
    `--web.listen-address=${address}`,
    '--cluster.listen-address=',
  ];
  const server = await startServer(alertmanager, args, `http://${address}/-/ready`);
  const url = `http://${address}/api/v2/alerts`;
  return {
    /** Sends alerts that fire now. */
    post: async (alerts: readonly Labels[], annotations: Labels = {}) => {
      const body = JSON.stringify(alerts.map((labels) => ({ labels, annotations })));
      const headers = { 'content-type': 'application/json' };
      await vi.waitFor(async () => {
        const answer = await fetch(url, { method: 'POST', body, headers });
        if (!answer.ok) throw new Error(`Alertmanager answered ${answer.status}`);
      }, PATIENCE);
    },
    alerts: async () => (await (await fetch(url)).json()) as readonly ShownAlert[],
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

interface ShownAlert {
  readonly labels: Labels;
  readonly annotations: Readonly<Record<string, string>>;
  /** Receivers that its routes choose, even if it is suppressed. */
  readonly receivers: readonly { readonly name: string }[];
  readonly status: { readonly state: 'active' | 'suppressed' | 'unprocessed' };
}

/** An alert of a notification that reached the webhook. */
interface Page {
  /** Time of arrival, monotonic ms. */
  readonly at: number;
  /** Name in Alertmanager's configuration, such as critical or search-chat. */
  readonly receiver: string;
  readonly status: 'firing' | 'resolved';
  readonly labels: Labels;
  readonly annotations: Readonly<Record<string, string>>;
}

/** Starts a server for Alertmanager's webhooks; `await using` closes it. */
export async function startWebhook() {
  const pages: Page[] = [];
  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const at = performance.now();
    const { receiver, alerts } = (await json(request)) as {
      readonly receiver: string;
      readonly alerts: readonly Omit<Page, 'at' | 'receiver'>[];
    };
    pages.push(...alerts.map((alert) => ({ ...alert, at, receiver })));
    response.end();
  }
  const server = createServer((request, response) => void receive(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    pages: pages as readonly Page[],
    /** Waits for a page, of this project if one is given, that arrived later than `after`. */
    page: (
      status: Page['status'],
      alertname: string,
      { project, after = 0 }: { readonly project?: string; readonly after?: number } = {},
    ) =>
      vi.waitFor(() => {
        const found = pages.find(
          ({ at, status: seen, labels }) =>
            at > after &&
            seen === status &&
            labels['alertname'] === alertname &&
            (project === undefined || labels['project'] === project),
        );
        if (found !== undefined) return found;
        throw new Error(`no ${alertname} ${status}; the pages were ${JSON.stringify(pages)}`);
      }, PATIENCE),
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Environment of the Go programs: less garbage collection, and no threads that spin on cores of other tests. */
const SPARING = { GOGC: '800', GOMAXPROCS: '1' };

/**
 * Starts a server and waits until this address answers 2xx. Disposing of it kills it and waits for its end.
 * @throws {Error} with its output, if it ends or does not answer; it is killed first
 */
async function startServer(
  program: string,
  args: readonly string[],
  url: string,
): Promise<AsyncDisposable> {
  if (program === '') throw new Error('Prometheus and Alertmanager are not installed');
  await using opened = new AsyncDisposableStack();
  const child = spawn(program, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...SPARING },
  });
  const closed = once(child, 'close');
  opened.defer(async () => {
    child.kill('SIGKILL');
    await closed;
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  }
  const answers = vi.waitFor(async () => {
    const answer = await fetch(url).catch(() => undefined);
    if (answer?.ok !== true) throw new Error(`${program} does not answer; it said:\n${output}`);
  }, PATIENCE);
  async function ends(): Promise<never> {
    await closed;
    throw new Error(`${program} ended; it said:\n${output}`);
  }
  await Promise.race([answers, ends()]);
  return opened.move();
}

/** Replaces every `for` except 0s. A stalled machine stays below it. */
const HELD = '5s';
/** Replaces the `for` of alerts that must fire before others, or must not fire before the first scrape. */
const HELD_OTHERWISE: Readonly<Record<string, string>> = {
  EvalwatchServiceFailing: '3s',
  EvalwatchAbsent: '30s',
  EvalwatchConfigReloadFailed: '30s',
  EvalwatchErrorInfoBacklog: '30s',
};

interface Addresses {
  /** `host:port`. */
  readonly daemon: string;
  /** `host:port`. */
  readonly alertmanager: string;
  /** Base URL. */
  readonly webhook: string;
}

/**
 * Returns the text of a shipped file with its times cut to seconds and with these addresses. Everything else, above all the
 * expressions, stays unchanged.
 * @param file below config/
 * @param edit changes its text as its user would
 */
export async function shipped(
  file: string,
  addresses: Addresses,
  edit: (text: string) => string = (text) => text,
): Promise<string> {
  const content: unknown = parse(edit(await readFile(join(CONFIG, file), 'utf8')));
  // JSON is YAML too.
  return JSON.stringify(content, function (this: { alert?: string }, key, value: unknown) {
    if (key !== 'for') return hurried(key, value, addresses);
    return value === '0s' ? value : (HELD_OTHERWISE[this.alert ?? ''] ?? HELD);
  });
}

function hurried(key: string, value: unknown, addresses: Addresses): unknown {
  switch (key) {
    case 'keep_firing_for':
      return '10s';
    case 'scrape_interval':
    case 'evaluation_interval':
    case 'group_interval':
    case 'interval':
      return '1s';
    case 'repeat_interval':
      // Only the watchdog has 50s; the others are hours.
      return value === '50s' ? '1500ms' : value;
    case 'group_wait':
      return '0s';
    case 'targets':
      return String(value) === '127.0.0.1:9093' ? [addresses.alertmanager] : [addresses.daemon];
    case 'url':
      return addresses.webhook;
    default:
      return value;
  }
}
