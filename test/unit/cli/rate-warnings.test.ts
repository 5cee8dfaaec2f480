import { describe, expect, it } from 'vitest';
import type { ProjectConfig } from '../../../src/config/config.ts';
import { planProjects } from '../../../src/cli/plan.ts';
import { rateWarnings } from '../../../src/cli/rate-warnings.ts';

const SATURDAY = Date.UTC(2026, 0, 10, 12, 34, 56, 789);

function projects(count: number, schedule: string, datasets = false): readonly ProjectConfig[] {
  return Array.from({ length: count }, (_, index) => ({
    id: `${schedule} ${index}`,
    schedule,
    timezone: 'UTC',
    key: { file: '/key' },
    datasets,
    team: '',
    expect: { limits: { PENDING: 'auto', RUNNING: 'auto' }, maxFailureRatio: 0.2 },
  }));
}

async function warningsOf(configured: readonly ProjectConfig[], maxPerSecond: number) {
  const planned = await planProjects(configured, SATURDAY);
  return rateWarnings(planned, maxPerSecond, SATURDAY);
}

describe('the warning about too many requests', () => {
  it.each([
    ['exactly the limit', projects(100, '*/10 * * * * *'), 10],
    ['a crowd at one moment of the hour', projects(1000, '0 * * * *'), 10],
    ['no limit', projects(1000, '* * * * * *'), 0],
    ['a fraction', projects(1, '*/2 * * * * *'), 0.5],
  ])('is not given for %s', async (_, configured, limit) => {
    expect(await warningsOf(configured, limit)).toEqual([]);
  });

  it.each([
    ['more projects than fit', projects(101, '*/10 * * * * *'), 10, '10.1'],
    ['datasets, which are listed as well', projects(60, '*/10 * * * * *', true), 10, '12'],
    [
      'different schedules together',
      [...projects(2, '* * * * * *'), ...projects(1, '*/2 * * * * *')],
      2,
      '2.5',
    ],
    ['a rate just above the limit', projects(1, '* * * * * *'), 0.9999, '1'],
  ])('states the requests per second for %s', async (_, configured, limit, figure) => {
    const [warning] = await warningsOf(configured, limit);
    expect(warning).toContain(`need ${figure} requests per second`);
    expect(warning).toContain(`allows ${limit}`);
  });

  it('names the busiest hour of the coming week', async () => {
    const [warning] = await warningsOf(projects(20, '* * 9-17 * * 1-5'), 10);
    expect(warning).toContain('need 20 requests per second in the hour from 2026-01-12T09:00:00Z');
  });
});
