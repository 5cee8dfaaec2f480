import { expect, it } from 'vitest';
import { soak } from '../support/soak/soak.ts';
import { soakFaults } from '../support/soak/faults.ts';

const RELOADS = 60;

it(
  'A daemon that reloads again and again, in a lively world with a faulty service, misses nothing and doubles nothing',
  { timeout: 300_000 },
  async () => {
    const report = await soak({
      parts: [{ seconds: 8, kills: 0, troubles: 0, reloads: RELOADS }],
      faults: soakFaults('all'),
      seed: 67,
      projects: 4,
    });

    expect(report.differences).toEqual([]);
    const told = report.observation.runs.flatMap(({ lines }) => lines);
    const reloaded = told.filter(({ event }) => event?.startsWith('config.reload'));
    expect(reloaded.length).toBeGreaterThanOrEqual(RELOADS);
    expect(report.observation.transitions.length).toBeGreaterThan(0);
  },
);
