import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, type Server, createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import { debianTool } from '../../support/debian-tool.ts';
import { freePort } from '../../support/free-port.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { CONFIG, alerts } from './rules-file.ts';

const alertmanager =
  debianTool('prometheus-alertmanager', 'prometheus-alertmanager', 'alertmanager') ?? '';
/** In CI a missing Alertmanager fails the tests instead of skipping them. */
const RUNS = alertmanager !== '' || process.env['CI'] === 'true';
const FILE = join(CONFIG, 'alertmanager/alertmanager.yml');

it('sends nothing to an address that nobody has chosen', async () => {
  const { receivers } = parse(await readFile(FILE, 'utf8')) as { receivers: readonly object[] };
  expect(receivers).toEqual(['critical', 'warning', 'info', 'watchdog'].map((name) => ({ name })));
});

const PATIENCE = { timeout: 100_000, interval: 100 };

type Labels = Readonly<Record<string, string>>;

describe.runIf(RUNS)('the inhibition rules', { timeout: 240_000 }, () => {
  it('suppress alerts whose cause fires, within the same project', async () => {
    const firing = [
      { alertname: 'EvalwatchAuthFailing', project: 'a' },
      { alertname: 'EvalwatchProjectPollFailing', project: 'a' },
      { alertname: 'EvalwatchDataStale', project: 'a' },
      { alertname: 'EvalwatchProjectPollFailing', project: 'b' },
      { alertname: 'EvalwatchDataStale', project: 'b' },
      { alertname: 'EvalwatchSchedulerStalled', project: 'c' },
      { alertname: 'EvalwatchDataStale', project: 'c' },
      { alertname: 'EvalwatchDataStale', project: 'd' },
      { alertname: 'EvalwatchPromptsVanished', project: 'd' },
      { alertname: 'EvalwatchPromptsMissing', project: 'd' },
      { alertname: 'EvalwatchPromptsMissing', project: 'e' },
      { alertname: 'EvalwatchProjectsUnowned' },
      { alertname: 'EvalwatchWorkerLeaseLost', instance: 'x' },
    ];
    await using manager = await alertmanagerWith(firing);
    await expect
      .poll(() => manager.suppressed(), PATIENCE)
      .toEqual([
        'EvalwatchDataStale a',
        'EvalwatchDataStale b',
        'EvalwatchDataStale c',
        'EvalwatchProjectPollFailing a',
        'EvalwatchPromptsMissing d',
        'EvalwatchWorkerLeaseLost x',
      ]);
  });

  it('suppress alerts labelled cause="service" while EvalwatchServiceFailing fires, and no others', async () => {
    const cause = 'service';
    const firing = [
      { alertname: 'EvalwatchServiceFailing', instance: 'x', cause },
      { alertname: 'EvalwatchAuthFailing', project: 'a', cause },
      { alertname: 'EvalwatchProjectPollFailing', project: 'b', cause },
      { alertname: 'EvalwatchDataStale', project: 'c', cause },
      { alertname: 'EvalwatchPromptFailed', project: 'd' },
      { alertname: 'EvalwatchAuthFailing', project: 'e' },
      { alertname: 'EvalwatchProjectPollFailing', project: 'f' },
      { alertname: 'EvalwatchDataStale', project: 'g' },
    ];
    await using manager = await alertmanagerWith(firing);
    await expect
      .poll(() => manager.suppressed(), PATIENCE)
      .toEqual(['EvalwatchAuthFailing a', 'EvalwatchDataStale c', 'EvalwatchProjectPollFailing b']);
  });

  it('suppress EvalwatchServiceFailing with cause="store" while EvalwatchStoreWriteFailing fires', async () => {
    const firing = [
      { alertname: 'EvalwatchStoreWriteFailing' },
      { alertname: 'EvalwatchServiceFailing', instance: 'x', cause: 'store' },
      { alertname: 'EvalwatchServiceFailing', instance: 'y', cause: 'service' },
      { alertname: 'EvalwatchProjectPollFailing', project: 'a', cause: 'service' },
      { alertname: 'EvalwatchProjectPollFailing', project: 'b' },
    ];
    await using manager = await alertmanagerWith(firing);
    await expect
      .poll(() => manager.suppressed(), PATIENCE)
      .toEqual(['EvalwatchProjectPollFailing a', 'EvalwatchServiceFailing x']);
  });

  it('suppress no alert labelled cause="service" while EvalwatchServiceFailing does not fire', async () => {
    const cause = 'service';
    const firing = [
      { alertname: 'EvalwatchAuthFailing', project: 'a', cause },
      { alertname: 'EvalwatchProjectPollFailing', project: 'b', cause },
      { alertname: 'EvalwatchDataStale', project: 'c', cause },
      // When EvalwatchDown suppresses EvalwatchCrashLooping, Alertmanager has processed the alerts above too.
      { alertname: 'EvalwatchDown', instance: 'x' },
      { alertname: 'EvalwatchCrashLooping', instance: 'x' },
    ];
    await using manager = await alertmanagerWith(firing);
    await expect.poll(() => manager.suppressed(), PATIENCE).not.toEqual([]);
    expect(await manager.suppressed()).toEqual(['EvalwatchCrashLooping x']);
  });

  it('suppress only the other alerts of the same instance while EvalwatchDown fires', async () => {
    const firing = [
      { alertname: 'EvalwatchDown', instance: 'x' },
      { alertname: 'EvalwatchCrashLooping', instance: 'x' },
      { alertname: 'EvalwatchCrashLooping', instance: 'y' },
      { alertname: 'EvalwatchPromptFailed', project: 'a' },
      { alertname: 'EvalwatchProjectsUnowned' },
      { alertname: 'SomebodyElses', instance: 'x' },
    ];
    await using manager = await alertmanagerWith(firing);
    await expect.poll(() => manager.suppressed(), PATIENCE).toEqual(['EvalwatchCrashLooping x']);
  });

  it('suppress every other alert of evalwatch but the watchdog while EvalwatchAbsent fires', async () => {
    const exceptions = ['EvalwatchAbsent', 'EvalwatchWatchdog'];
    const others = alerts.map(({ alert }) => alert).filter((name) => !exceptions.includes(name));
    const firing = [...exceptions, ...others, 'SomebodyElses'].map((alertname) => ({
      alertname,
      project: 'a',
    }));
    await using manager = await alertmanagerWith(firing);
    await expect
      .poll(() => manager.suppressed(), PATIENCE)
      .toEqual(others.map((name) => `${name} a`).toSorted());
  });
});

describe.runIf(RUNS)('the receivers in receivers.yml', () => {
  const firing = [{ alertname: 'EvalwatchPromptFailed', project: 'chat' }];
  const annotations = {
    summary: 'A prompt of project chat failed',
    description: 'The newest failure was found 5s ago: TIMEOUT 1.',
    page_url: 'https://evalwatch.example.com/projects/chat',
    runbook_url: 'https://runbooks.example.com/EvalwatchPromptFailed.md',
  };

  it.each(['slack', 'mail'] as const)('%s says what failed, with its links', async (name) => {
    await using received = await (name === 'slack' ? postBox() : mailBox());
    const config = await receiverConfig(name, received.address);
    await using _ = await alertmanagerWith(firing, { config, annotations });
    await expect.poll(() => received.text(), PATIENCE).toContain('EvalwatchPromptFailed.md');
    for (const text of Object.values(annotations)) expect(received.text()).toContain(text);
  });
});

/** Returns a configuration with one of the receivers, which sends to `address`; without a login or TLS. */
async function receiverConfig(name: 'slack' | 'mail', address: string): Promise<string> {
  const shipped = await readFile(join(CONFIG, 'alertmanager/receivers.yml'), 'utf8');
  const { receivers } = parse(
    shipped
      .replace(/api_url_file: .*/, `api_url: http://${address}/`)
      .replace(/smarthost: .*/, `smarthost: ${address}\n        require_tls: false`)
      .replaceAll(/^ *auth_.*\n/gm, ''),
  ) as { receivers: readonly { readonly name: string }[] };
  return JSON.stringify({
    route: { receiver: name, group_wait: '0s' },
    receivers: receivers.filter((each) => each.name === name),
  });
}

/** Takes what is posted by HTTP. */
function postBox() {
  return box((take) =>
    createServer((request, response) => {
      request.on('data', take).on('end', () => response.end());
    }),
  );
}

/** Takes what is mailed by SMTP. */
function mailBox() {
  return box((take) =>
    createTcpServer((socket) => {
      socket.write('220 ready\r\n');
      // The sender waits for the answer to each command.
      socket.on('data', (data: Buffer) => {
        take(data);
        socket.write(/^DATA/m.test(data.toString()) ? '354 go on\r\n' : '250 ok\r\n');
      });
    }),
  );
}

async function box(serve: (take: (data: Buffer) => void) => Server) {
  let text = '';
  const server = serve((data) => {
    text += data.toString();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    text: () => text,
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close');
      server.close();
      await closed;
    },
  };
}

/** Starts an Alertmanager with the shipped configuration, or another one, and posts these alerts to it. */
async function alertmanagerWith(
  firing: readonly Labels[],
  { config, annotations = {} }: { readonly config?: string; readonly annotations?: Labels } = {},
) {
  await using cleanup = new AsyncDisposableStack();
  const directory = cleanup.use(await temporaryDirectory());
  const file = config === undefined ? FILE : join(directory.path, 'alertmanager.yml');
  if (config !== undefined) await writeFile(file, config);
  const address = `127.0.0.1:${await freePort()}`;
  const process = spawn(
    alertmanager,
    [
      `--config.file=${file}`,
      `--storage.path=${directory.path}`,
      `--web.listen-address=${address}`,
      '--cluster.listen-address=',
    ],
    { stdio: 'ignore' },
  );
  cleanup.defer(async () => {
    process.kill();
    await once(process, 'exit');
  });
  const url = `http://${address}/api/v2/alerts`;
  const body = JSON.stringify(firing.map((labels) => ({ labels, annotations })));
  const headers = { 'content-type': 'application/json' };
  await vi.waitFor(async () => {
    expect((await fetch(url, { method: 'POST', body, headers })).status).toBe(200);
  }, PATIENCE);
  const owned = cleanup.move();
  return {
    /** Returns the alerts that it suppresses, as "name project", or "name instance", sorted. */
    async suppressed(): Promise<readonly string[]> {
      const answer = await fetch(`${url}?active=false&silenced=false`);
      const alertsHeld = (await answer.json()) as readonly { readonly labels: Labels }[];
      return alertsHeld
        .map(({ labels }) => `${labels['alertname']} ${labels['project'] ?? labels['instance']}`)
        .toSorted();
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
