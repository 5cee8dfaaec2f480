import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { freePort } from '../support/free-port.ts';
import { withTeams, withWebhooks } from '../support/team-routes.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { alerts } from '../unit/prometheus/rules-file.ts';
import { type Labels, PATIENCE, RUNS, shipped, startAlertmanager, startWebhook } from './stack.ts';

const DOCUMENT = join(import.meta.dirname, '../../docs/alerting.md');
const TEAMS = ['search', 'ads', 'support'];
const WATCHDOG: Labels = { alertname: 'EvalwatchWatchdog', severity: 'none' };
/** Suppresses every other alert. */
const ABSENT: Labels = { alertname: 'EvalwatchAbsent', severity: 'critical' };

const firing = alerts.map(({ alert, labels, annotations }) => ({
  isOfProject: annotations.summary.includes('$labels.project'),
  labels: { alertname: alert, severity: labels.severity },
}));
const ofProjects = firing.filter(({ isOfProject }) => isOfProject).map(({ labels }) => labels);
/**
 * Alerts about evalwatch itself, each with its own instance. Excludes the watchdog, the alert that suppresses all others and
 * one that is suppressed.
 */
const ofEvalwatch: readonly Labels[] = firing
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

/** Returns notifications as "receiver alertname project". */
function sentTo(receiverOf: (severity: string) => string, all: readonly Labels[]) {
  return all.map((labels) => sentence(receiverOf(labels['severity'] ?? ''), labels));
}

function sentence(receiver: string, { alertname, project = '' }: Labels): string {
  return `${receiver} ${alertname} ${project}`;
}

const toEverybody = (severity: string) => severity;
const toTeam = (team: string) => (severity: string) =>
  severity === 'critical' ? `${team}-pager` : `${team}-chat`;

describe.runIf(RUNS)('Alertmanager with the shipped configuration', { timeout: 300_000 }, () => {
  it('routes alerts of three teams, and alerts without a team route, only to their own receivers', async () => {
    await using manager = await startWith((text) => withTeams(text, TEAMS));
    const posted = [undefined, 'without-a-route', ...TEAMS].map(alertsOf);
    const [ofNobody = [], ofOther = [], ...ofTeams] = posted;
    const expected = [
      ...sentTo(toEverybody, [...ofNobody, ...ofOther, ...ofEvalwatch]),
      ...TEAMS.flatMap((team, index) => sentTo(toTeam(team), ofTeams[index] ?? [])),
    ].toSorted();
    expect(expected.length).toBeGreaterThan(60);

    await manager.post([...posted.flat(), ...ofEvalwatch, WATCHDOG]);

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

  it('routes an alert with an unknown severity to the chat of its team', async () => {
    await using manager = await startWith((text) => withTeams(text, TEAMS));
    const alert = { alertname: 'EvalwatchUnheardOf', team: 'ads', severity: 'page' };
    await manager.post([alert]);
    await expect.poll(() => manager.pages(), PATIENCE).toEqual([sentence('ads-chat', alert)]);
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

  it('suppresses an alert of a team if its cause fires for the same project', async () => {
    await using manager = await startWith((text) => withTeams(text, TEAMS));
    const cause = { alertname: 'EvalwatchAuthFailing', severity: 'critical', team: 'ads' };
    const result = { alertname: 'EvalwatchProjectPollFailing', severity: 'warning', team: 'ads' };
    await manager.post([{ ...cause, project: 'a' }]);
    await expect.poll(() => manager.pages(), PATIENCE).toHaveLength(1);

    await manager.post(['a', 'b'].map((project) => ({ ...result, project })));

    await expect
      .poll(() => manager.pages(), PATIENCE)
      .toEqual([
        sentence('ads-chat', { ...result, project: 'b' }),
        sentence('ads-pager', { ...cause, project: 'a' }),
      ]);
    expect(await manager.suppressed()).toEqual([sentence('ads-chat', { ...result, project: 'a' })]);
  });
});

interface Route {
  readonly receiver: string;
  readonly matchers: readonly string[];
  readonly group_wait?: string;
  readonly repeat_interval?: string;
  readonly routes?: readonly Route[];
}

it('team routes have the same group_wait and repeat_interval as the default routes', async () => {
  const file = join(import.meta.dirname, '../../config/alertmanager/alertmanager.yml');
  const { route } = parse(withTeams(await readFile(file, 'utf8'), TEAMS)) as { route: Route };
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
