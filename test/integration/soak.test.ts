import { describe, expect, it } from 'vitest';
import { soakFaults } from '../support/soak/faults.ts';
import { soak } from '../support/soak/soak.ts';

const SEED = 7;

describe('A daemon that watches a lively world through a faulty service', () => {
  it.concurrent.each([
    ['records, shows and tells exactly what it was served', 0, 0],
    ['and is killed again and again misses nothing and doubles nothing', 5, 0],
    ['and reloads again and again misses nothing and doubles nothing', 0, 60],
  ])(
    '%s',
    async (_, kills, reloads) => {
      const faults = soakFaults('all');
      const seed = SEED + kills + reloads;
      const report = await soak({ seconds: 8, kills, reloads, faults, seed, projects: 4 });

      expect(report.differences).toEqual([]);
      expect(report.observation.runs.filter(({ killed }) => killed)).toHaveLength(kills);
      const told = report.observation.runs.flatMap(({ lines }) => lines);
      const reloaded = told.filter(({ event }) => event?.startsWith('config.reload'));
      expect(reloaded.length).toBeGreaterThanOrEqual(reloads);
      expect(report.observation.transitions.length).toBeGreaterThan(0);
      expect(report.observation.failures.some(({ settled }) => settled)).toBe(true);
    },
    90_000,
  );
});
