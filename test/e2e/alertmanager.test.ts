import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { freePort } from '../support/free-port.ts';
import { startMailServer, startReceiver } from '../support/receivers.ts';
import { withTeams, withWebhooks } from '../support/team-routes.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { alerts } from '../unit/prometheus/rules-file.ts';
import { type Labels, PATIENCE, RUNS, shipped, startAlertmanager, startWebhook } from './stack.ts';

const DOCUMENT = join(import.meta.dirname, '../../docs/alerting.md');
const FOLDER = join(import.meta.dirname, '../../config/alertmanager');
const TEAMS = ['search', 'ads', 'support'];
const WATCHDOG: Labels = { alertname: 'EvalwatchWatchdog', severity: 'none' };
/** Suppresses every other alert. */
const ABSENT: Labels = { alertname: 'EvalwatchAbsent', severity: 'critical' };

const shippedAlerts = alerts.map(({ alert, labels, annotations }) => ({
  isOfProject: annotations.summary.includes('$labels.project'),
  labels: { alertname: alert, severity: labels.severity },
}));
const ofProjects = shippedAlerts
  .filter(({ isOfProject }) => isOfProject)
  .map(({ labels }) => labels);
/**
 * Alerts about evalwatch itself, each with its own instance. Excludes the watchdog, the alert that suppresses all others and
 * one that is suppressed.
 */
const ofEvalwatch: readonly Labels[] = shippedAlerts
  .filter(({ isOfProject }) => !isOfProject)
  .map(({ labels }) => labels)
  .filter(({ alertname }) => !/Watchdog|Absent|WorkerLeaseLost/.test(alertname))
  .map((labels) => ({ ...labels, instance: `instance-of-${labels.alertname}` }));

/** Returns every alert about a project, each with its own project, so that none suppresses another. */
function alertsOf(team: string | undefined): readonly Labels[] {
  return ofProjects.map((labels) => ({
    ...labels,
    project: `${labels.alertname}-${team ?? 'nobody'}`,
    ...(team === undefined ? {} : { team }),
  }));
}

/** Returns notifications as "receiver alertname project", or "receiver alertname instance". */
function sentTo(receiverOf: (severity: string) => string, all: readonly Labels[]) {
  return all.map((labels) => sentence(receiverOf(labels['severity'] ?? ''), labels));
}

function sentence(receiver: string, { alertname, project, instance }: Labels): string {
  return `${receiver} ${alertname} ${project ?? instance ?? ''}`;
}

const toEverybody = (severity: string) => severity;
const toTeam = (team: string) => (severity: string) =>
  severity === 'critical' ? `${team}-pager` : `${team}-chat`;

describe.runIf(RUNS)('Alertmanager with the shipped configuration', { timeout: 300_000 }, () => {
  it('routes alerts of three teams, and alerts without a team route, only to their own receivers', async () => {
    await using manager = await startWith((text) => withTeams(text, TEAMS));
    const posted = [undefined, 'without-a-route', ...TEAMS].map(alertsOf);
    const [ofNobody = [], ofOther = [], ...ofTeams] = posted;
    const unheardOf = { alertname: 'EvalwatchUnheardOf', team: 'ads', severity: 'page' };
    const expected = [
      ...sentTo(toEverybody, [...ofNobody, ...ofOther, ...ofEvalwatch]),
      sentence('ads-chat', unheardOf),
      ...TEAMS.flatMap((team, index) => sentTo(toTeam(team), ofTeams[index] ?? [])),
    ].toSorted();
    expect(expected.length).toBeGreaterThan(60);

    await manager.post([...posted.flat(), ...ofEvalwatch, unheardOf, WATCHDOG]);

    await expect.poll(() => manager.pages(), PATIENCE).toEqual(expected);
    const watchdog = sentence('watchdog', WATCHDOG);
    expect(await manager.routed()).toEqual([...expected, watchdog].toSorted());
  });

  it('routes every alert by its severity if no team has a route', async () => {
    await using manager = await startWith((text) => text);
    const posted = [...alertsOf('search'), ...alertsOf(undefined), ...ofEvalwatch];
    const expected = sentTo(toEverybody, posted).toSorted();
    const unheardOf = { alertname: 'EvalwatchUnheardOf', team: 'search', severity: 'page' };

    await manager.post([...posted, unheardOf, WATCHDOG]);

    const all = [...expected, sentence('warning', unheardOf)].toSorted();
    await expect.poll(() => manager.pages(), PATIENCE).toEqual(all);
    const watchdog = sentence('watchdog', WATCHDOG);
    expect(await manager.routed()).toEqual([...all, watchdog].toSorted());
  });

  it('repeats the watchdog alert, even while EvalwatchAbsent suppresses the other alerts', async () => {
    await using manager = await startWith((text) => withTeams(text, TEAMS), { watchdog: true });
    const held = alertsOf('search');
    await manager.post([ABSENT]);
    await expect.poll(() => manager.pages(), PATIENCE).toEqual([sentence('critical', ABSENT)]);

    await manager.post([WATCHDOG, ...held]);

    await expect
      .poll(() => manager.notifications('watchdog').length, PATIENCE)
      .toBeGreaterThanOrEqual(3);
    await expect.poll(() => manager.suppressed(), PATIENCE).toHaveLength(held.length);
    const arrived = new Set(manager.pages());
    expect(arrived).toEqual(
      new Set([sentence('critical', ABSENT), sentence('watchdog', WATCHDOG)]),
    );
  });

  it('also notifies a team of an alert about all projects with the routes in docs/alerting.md', async () => {
    const [, example = ''] =
      /```yaml\n(- receiver: [\s\S]*?)```/.exec(await readFile(DOCUMENT, 'utf8')) ?? [];
    const routes = example.replaceAll(/^/gm, '    ').trimEnd();
    await using manager = await startWith((text) =>
      withTeams(text, TEAMS).replace(/^ {2}routes:\n/m, `$&${routes}\n`),
    );
    const failing = { alertname: 'EvalwatchServiceFailing', severity: 'critical' };
    const stale = { alertname: 'EvalwatchDataStale', severity: 'critical', project: 'p' };
    await manager.post([{ ...stale, team: 'search' }, failing]);
    await expect
      .poll(() => manager.pages(), PATIENCE)
      .toEqual(
        [
          sentence('critical', failing),
          sentence('search-chat', failing),
          sentence('search-pager', stale),
        ].toSorted(),
      );
  });

  const cause = 'service';
  const exceptions = ['EvalwatchAbsent', 'EvalwatchWatchdog'];
  const others = alerts.map(({ alert }) => alert).filter((name) => !exceptions.includes(name));

  it.each<readonly [what: string, firing: readonly Labels[], suppressed: readonly string[]]>([
    [
      'whose cause fires, within the same project',
      [
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
      ],
      [
        'EvalwatchDataStale a',
        'EvalwatchDataStale b',
        'EvalwatchDataStale c',
        'EvalwatchProjectPollFailing a',
        'EvalwatchPromptsMissing d',
        'EvalwatchWorkerLeaseLost x',
      ],
    ],
    [
      'with cause="service" while EvalwatchServiceFailing fires, and no others',
      [
        { alertname: 'EvalwatchServiceFailing', instance: 'x', cause },
        { alertname: 'EvalwatchAuthFailing', project: 'a', cause },
        { alertname: 'EvalwatchProjectPollFailing', project: 'b', cause },
        { alertname: 'EvalwatchDataStale', project: 'c', cause },
        { alertname: 'EvalwatchPromptFailed', project: 'd' },
        { alertname: 'EvalwatchAuthFailing', project: 'e' },
        { alertname: 'EvalwatchProjectPollFailing', project: 'f' },
        { alertname: 'EvalwatchDataStale', project: 'g' },
      ],
      ['EvalwatchAuthFailing a', 'EvalwatchDataStale c', 'EvalwatchProjectPollFailing b'],
    ],
    [
      'EvalwatchServiceFailing with cause="store" while EvalwatchStoreWriteFailing fires',
      [
        { alertname: 'EvalwatchStoreWriteFailing' },
        { alertname: 'EvalwatchServiceFailing', instance: 'x', cause: 'store' },
        { alertname: 'EvalwatchServiceFailing', instance: 'y', cause },
        { alertname: 'EvalwatchProjectPollFailing', project: 'a', cause },
        { alertname: 'EvalwatchProjectPollFailing', project: 'b' },
      ],
      ['EvalwatchProjectPollFailing a', 'EvalwatchServiceFailing x'],
    ],
    [
      'of the same instance while EvalwatchDown fires, none with cause="service" by itself',
      [
        { alertname: 'EvalwatchAuthFailing', project: 'a', cause },
        { alertname: 'EvalwatchProjectPollFailing', project: 'b', cause },
        { alertname: 'EvalwatchDataStale', project: 'c', cause },
        { alertname: 'EvalwatchPromptFailed', project: 'd' },
        { alertname: 'EvalwatchProjectsUnowned' },
        { alertname: 'EvalwatchDown', instance: 'x' },
        { alertname: 'EvalwatchCrashLooping', instance: 'x' },
        { alertname: 'EvalwatchCrashLooping', instance: 'y' },
        { alertname: 'SomebodyElses', instance: 'x' },
      ],
      ['EvalwatchCrashLooping x'],
    ],
    [
      'of evalwatch, but not the watchdog, while EvalwatchAbsent fires',
      [...exceptions, ...others, 'SomebodyElses'].map((alertname) => ({ alertname, project: 'a' })),
      others.map((name) => `${name} a`).toSorted(),
    ],
  ])('suppresses alerts %s', async (_, firing, suppressed) => {
    await using manager = await startWith((text) => text);
    await manager.post(firing);
    await expect
      .poll(async () => {
        const held = await manager.suppressed();
        return held.map((each) => each.replace(/^\S+ /, '')).toSorted();
      }, PATIENCE)
      .toEqual(suppressed);
  });

  it.each(['slack', 'mail'] as const)('says by %s what failed, with its links', async (name) => {
    const annotations = {
      summary: 'A prompt of project chat failed',
      description: 'The newest failure was found 5s ago: TIMEOUT 1.',
      page_url: 'https://evalwatch.example.com/projects/chat',
      runbook_url: 'https://runbooks.example.com/EvalwatchPromptFailed.md',
    };
    await using directory = await temporaryDirectory();
    await using received = await startBox(name);
    const config = await receiverConfig(name, `127.0.0.1:${received.port}`);
    const address = `127.0.0.1:${await freePort()}`;
    await using manager = await startAlertmanager(directory.path, address, config);
    await manager.post([{ alertname: 'EvalwatchPromptFailed', project: 'chat' }], annotations);
    await expect.poll(() => received.text(), PATIENCE).toContain('EvalwatchPromptFailed.md');
    for (const text of Object.values(annotations)) expect(received.text()).toContain(text);
  });
});

it('Alertmanager sends nothing to an address that nobody has chosen', async () => {
  const text = await readFile(join(FOLDER, 'alertmanager.yml'), 'utf8');
  const { receivers } = parse(text) as { receivers: readonly object[] };
  expect(receivers).toEqual(['critical', 'warning', 'info', 'watchdog'].map((name) => ({ name })));
});

interface Route {
  readonly receiver: string;
  readonly matchers: readonly string[];
  readonly group_wait?: string;
  readonly repeat_interval?: string;
  readonly routes?: readonly Route[];
}

it('team routes have the same group_wait and repeat_interval as the default routes', async () => {
  const text = await readFile(join(FOLDER, 'alertmanager.yml'), 'utf8');
  const { route } = parse(withTeams(text, TEAMS)) as { route: Route };
  const urgency = (routes: readonly Route[] = []) => {
    const bySeverity = routes
      .filter(({ matchers }) => matchers[0]?.startsWith('severity'))
      .map(({ matchers, group_wait: wait, repeat_interval: repeat }) => [matchers, wait, repeat]);
    return new Set(bySeverity.filter(([, wait, repeat]) => (wait ?? repeat) !== undefined));
  };
  const ofTeams = route.routes?.filter(({ matchers }) => matchers[0]?.startsWith('team')) ?? [];
  expect(ofTeams.map(({ matchers }) => matchers)).toEqual(
    TEAMS.map((team) => [`team = "${team}"`]),
  );
  for (const { routes } of ofTeams) expect(urgency(routes)).toEqual(urgency(route.routes));
});

/** Returns a configuration with one of the receivers, which sends to `address`; without a login or TLS. */
async function receiverConfig(name: 'slack' | 'mail', address: string): Promise<string> {
  const text = await readFile(join(FOLDER, 'receivers.yml'), 'utf8');
  const { receivers } = parse(
    text
      .replace(/api_url_file: .*/, `api_url: http://${address}/`)
      .replace(/smarthost: .*/, `smarthost: ${address}\n        require_tls: false`)
      .replaceAll(/^ *auth_.*\n/gm, ''),
  ) as { receivers: readonly { readonly name: string }[] };
  return JSON.stringify({
    route: { receiver: name, group_wait: '0s' },
    receivers: receivers.filter((each) => each.name === name),
  });
}

/** Takes what Alertmanager sends by HTTP or SMTP. */
async function startBox(name: 'slack' | 'mail') {
  if (name === 'slack') {
    const { received, ...box } = await startReceiver((response) => void response.end());
    return { ...box, text: () => received.map(({ body }) => body).join() };
  }
  const { mails, ...box } = await startMailServer({ disabledCommands: ['AUTH', 'STARTTLS'] });
  return { ...box, text: () => mails.map(({ source }) => source).join() };
}

/** Starts Alertmanager with the shipped configuration, edited as a user would, its times cut to seconds. */
async function startWith(
  edit: (text: string) => string,
  options: { readonly watchdog?: boolean } = {},
) {
  await using opened = new AsyncDisposableStack();
  const webhook = opened.use(await startWebhook());
  const directory = opened.use(await temporaryDirectory());
  const address = `127.0.0.1:${await freePort()}`;
  const addresses = { daemon: '', alertmanager: address, webhook: webhook.url };
  const config = await shipped('alertmanager/alertmanager.yml', addresses, (text) =>
    withWebhooks(edit(text), options),
  );
  const manager = opened.use(await startAlertmanager(directory.path, address, config));
  const owned = opened.move();
  const choices = async (isWanted: (state: string) => boolean) => {
    const shown = (await manager.alerts()).filter(({ status }) => isWanted(status.state));
    return shown
      .flatMap(({ labels, receivers }) => receivers.map(({ name }) => sentence(name, labels)))
      .toSorted();
  };
  return {
    post: (all: readonly Labels[]) => manager.post(all),
    /** Returns the distinct notifications that arrived, sorted. */
    pages: () => [
      ...new Set(
        webhook.pages.map(({ receiver, labels }) => sentence(receiver, labels)).toSorted(),
      ),
    ],
    notifications: (receiver: string) => webhook.pages.filter((page) => page.receiver === receiver),
    /** Returns all alerts with their receivers. */
    routed: () => choices(() => true),
    suppressed: () => choices((state) => state === 'suppressed'),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
