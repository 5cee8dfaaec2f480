import { describe, expect, it } from 'vitest';
import type { World } from '../../src/simulator/world/world.ts';
import { debianTool } from '../support/debian-tool.ts';
import { promptOf, startAlerting } from './alerting-stack.ts';

const prometheus = debianTool('prometheus', 'prometheus') ?? '';
const alertmanager =
  debianTool('prometheus-alertmanager', 'prometheus-alertmanager', 'alertmanager') ?? '';
const PROJECT = 'search-ranking';
/** Its prompt hangs too, but has no configured limit. */
const OTHER = 'checkout-bot';
const USUAL_SECONDS = 20;
const SCHEDULE_SECONDS = 5;
/** Twenty prompts must end, and evalwatch updates the usual time every 15 s. */
const PATIENCE = { timeout: 120_000, interval: 100 };

// In CI a missing program fails the tests instead of skipping them.
const runs = (prometheus !== '' && alertmanager !== '') || process.env['CI'] === 'true';

describe.runIf(runs)('a stuck prompt', { timeout: 240_000 }, () => {
  it('notifies only the receiver of its team, with the usual time and the limit', async () => {
    const optionsOf = (maxRunning: string) => (project: string) =>
      project === PROJECT
        ? {
            team: 'search',
            expect: { max_running: maxRunning },
            schedule: `*/${SCHEDULE_SECONDS} * * * * *`,
          }
        : { team: 'ads' };
    await using stack = await startAlerting({ prometheus, alertmanager }, [PROJECT, OTHER], {
      teams: ['search', 'ads'],
      optionsOf: optionsOf('auto'),
    });
    using running = new DisposableStack();
    running.use(keepRunning(stack.world));
    const typical = `evalwatch_prompt_state_typical_seconds{project="${PROJECT}",status="RUNNING"}`;
    await expect.poll(() => stack.query(typical), PATIENCE).toHaveLength(1);
    const [seconds = 0] = await stack.query(typical);
    expect(seconds).toBeGreaterThan(USUAL_SECONDS - SCHEDULE_SECONDS);

    await stack.reload(optionsOf('30s'));

    const page = await stack.webhook.page('firing', 'EvalwatchPromptStuck');
    expect(page).toMatchObject({
      receiver: 'search-chat',
      labels: { project: PROJECT, team: 'search', status: 'RUNNING', severity: 'warning' },
      annotations: { summary: expect.stringContaining(PROJECT) },
    });
    const { description } = page.annotations;
    expect(description).toMatch(/has been RUNNING for \d/);
    expect(description).toMatch(
      new RegExp(`The usual time is ${Number(seconds.toPrecision(4))}s\\b`),
    );
    expect(description).toMatch(/limit.* 30s\b/);

    stack.world.setStatus(PROJECT, promptOf(PROJECT), 'COMPLETED');
    await stack.webhook.page('resolved', 'EvalwatchPromptStuck');
    const told = stack.webhook.pages.map(
      ({ receiver, labels, status }) => `${receiver} ${labels['alertname']} ${status}`,
    );
    expect(told).toEqual([
      'search-chat EvalwatchPromptStuck firing',
      'search-chat EvalwatchPromptStuck resolved',
    ]);
  });
});

/** Starts twenty prompts of the project now and one every second. Each ends after the usual time. */
function keepRunning(world: World): Disposable {
  const endings = new Set<NodeJS.Timeout>();
  function start(count: number): void {
    const ids = Array.from({ length: count }, () =>
      world.addPrompt(PROJECT, { status: 'RUNNING' }),
    );
    const ending = setTimeout(() => {
      for (const id of ids) world.setStatus(PROJECT, id, 'COMPLETED');
      endings.delete(ending);
    }, USUAL_SECONDS * 1000);
    endings.add(ending);
  }
  start(20);
  const starts = setInterval(() => start(1), 1000);
  return {
    [Symbol.dispose]: () => {
      clearInterval(starts);
      for (const ending of endings) clearTimeout(ending);
    },
  };
}
