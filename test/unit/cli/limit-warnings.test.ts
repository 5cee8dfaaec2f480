import { describe, expect, it } from 'vitest';
import type { ProjectConfig } from '../../../src/config/config.ts';
import type { Expectations } from '../../../src/domain/expectation.ts';
import { limitWarnings } from '../../../src/cli/limit-warnings.ts';
import { planProjects } from '../../../src/cli/plan.ts';

const NOW = Date.UTC(2026, 0, 10);

function project(id: string, schedule: string, limits: Partial<Expectations['limits']> = {}) {
  return {
    id,
    schedule,
    timezone: 'UTC',
    key: { file: '/key' },
    datasets: false,
    team: '',
    expect: { limits: { PENDING: 'auto', RUNNING: 'auto', ...limits }, maxFailureRatio: 0.2 },
  } satisfies ProjectConfig;
}

const warningsOf = async (...projects: readonly ProjectConfig[]) =>
  limitWarnings(await planProjects(projects, NOW), NOW);

describe('the warning about limits shorter than the time between two polls', () => {
  it('is not given for limits that are off or at least as long as the time between two polls', async () => {
    const warnings = await warningsOf(
      project('fast', '*/30 * * * * *', { RUNNING: 30_000 }),
      project('hourly', '0 * * * *'),
      project('daily', '0 9 * * *', { PENDING: 'off', RUNNING: 86_400_000 }),
    );
    expect(warnings).toEqual([]);
  });

  it('names the project, the limit and the interval for configured and default limits', async () => {
    const warnings = await warningsOf(
      project('daily', '0 9 * * *', { RUNNING: 300_000 }),
      project('fast', '* * * * *'),
    );
    expect(warnings).toEqual([
      'the limit for PENDING is shorter than the time between two polls: "daily" (1h, polled every 1d); prompts will seem stuck: set expect.max_pending of the project to more, or to off',
      'the limit for RUNNING is shorter than the time between two polls: "daily" (5m, polled every 1d); prompts will seem stuck: set expect.max_running of the project to more, or to off',
    ]);
  });

  it('names at most three projects and the number of others', async () => {
    const projects = Array.from({ length: 5 }, (_, index) =>
      project(`p${index}`, '0 */2 * * *', { RUNNING: 'off' }),
    );
    const [warning, ...others] = await warningsOf(...projects);
    expect(others).toEqual([]);
    expect(warning).toContain('"p2" (1h, polled every 2h) and 2 more;');
  });
});
