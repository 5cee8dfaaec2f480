import { describe, expect, it, vi } from 'vitest';
import { debianTool } from '../support/debian-tool.ts';
import { startAlerting } from './alerting-stack.ts';
import { PATIENCE } from './server.ts';

const prometheus = debianTool('prometheus', 'prometheus') ?? '';
const alertmanager =
  debianTool('prometheus-alertmanager', 'prometheus-alertmanager', 'alertmanager') ?? '';
/** Alerts that polls and scrapes raise if they are late because the machine is busy. */
const BUSY_MACHINE = new Set(['EvalwatchDown', 'EvalwatchSchedulerOverrun']);
const PROJECTS = Array.from({ length: 25 }, (_, index) => `project-${index}`);

// In CI a missing program fails the tests instead of skipping them.
const runs = (prometheus !== '' && alertmanager !== '') || process.env['CI'] === 'true';

describe.runIf(runs)('an unreachable evaluation service', { timeout: 240_000 }, () => {
  it('causes one notification for 25 projects, and one more when it is reachable again', async () => {
    await using stack = await startAlerting({ prometheus, alertmanager }, PROJECTS);
    stack.breakConnections();
    const page = await stack.webhook.page('firing', 'EvalwatchServiceFailing');
    expect(page).toMatchObject({
      receiver: 'critical',
      labels: { severity: 'critical' },
      annotations: { description: expect.stringMatching(/by reason: \d+ network\./) },
    });
    await vi.waitFor(async () => {
      const failing = PROJECTS.map(() => 'EvalwatchProjectPollFailing');
      expect(await stack.heldBack()).toEqual(failing);
    }, PATIENCE);

    stack.mendConnections();
    await stack.webhook.page('resolved', 'EvalwatchServiceFailing');
    const told = stack.webhook.pages
      .filter(({ labels }) => !BUSY_MACHINE.has(labels['alertname'] ?? ''))
      .map(({ status, labels }) => `${labels['alertname']} ${status}`);
    expect(told).toEqual(['EvalwatchServiceFailing firing', 'EvalwatchServiceFailing resolved']);
  });
});
