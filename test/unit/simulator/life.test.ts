import { describe, expect, it } from 'vitest';
import { PROMPT_STATUSES } from '../../../src/domain/status.ts';
import { DEFAULT_PROMPTS, Life } from '../../../src/simulator/life.ts';
import { DEFAULT_PROJECTS } from '../../../src/simulator/texts.ts';
import { World } from '../../../src/simulator/world.ts';

const START = Date.UTC(2026, 0, 1);

interface Move {
  readonly step: number;
  readonly project: string;
  readonly id: string;
  readonly from: string;
  readonly to: string;
}

/** Lets a world live. Returns its moves, with those of the datasets. */
function live(steps: number, seed?: number, prompts?: number) {
  let now = START;
  const world = new World(DEFAULT_PROJECTS, () => now);
  const life = new Life(world, seed, prompts);
  const statuses = (project: string) =>
    [...(world.prompts(project)?.values() ?? []), ...(world.datasets(project)?.values() ?? [])].map(
      ({ id, status }) => [id, status ?? 'NONE'] as const,
    );
  const moves: Move[] = [];
  const known = new Map(world.projects.map((project) => [project, new Map(statuses(project))]));
  const initial = structuredClone(known);
  for (let step = 1; step <= steps; step += 1) {
    now += 1000;
    life.step();
    for (const [project, before] of known) {
      const after = new Map(statuses(project));
      for (const id of new Set([...before.keys(), ...after.keys()])) {
        const [from = 'ABSENT', to = 'ABSENT'] = [before.get(id), after.get(id)];
        if (from !== to) moves.push({ step, project, id, from, to });
      }
      known.set(project, after);
    }
  }
  return { world, moves, initial };
}

const count = (moves: readonly Move[], from: RegExp, to: RegExp) =>
  moves.filter((move) => from.test(move.from) && to.test(move.to)).length;

describe('the life of the simulated service', () => {
  it('shows a newcomer each status at first, and a failure within 15 steps', () => {
    const { moves, initial } = live(15);
    for (const statuses of initial.values()) {
      const prompts = [...statuses].filter(([id]) => id.startsWith('prompt'));
      expect(prompts).toHaveLength(DEFAULT_PROMPTS);
      expect(new Set(prompts.map(([, status]) => status))).toEqual(
        new Set(PROMPT_STATUSES.filter((status) => status !== 'UNKNOWN')),
      );
    }
    expect(count(moves, /RUNNING/, /FAILED/)).toBeGreaterThan(0);
  });

  it('has a prompt that never ends', () => {
    const { world, initial, moves } = live(800);
    const moved = new Set(moves.map(({ id }) => id));
    const stuck = [...initial.values()].flatMap((statuses) =>
      [...statuses].filter(([id, status]) => status === 'RUNNING' && !moved.has(id)),
    );
    expect(stuck).toHaveLength(1);
    expect(world.projectOf(stuck[0]?.[0] ?? '')).toBe('search-ranking');
  });

  it('keeps the size of a project within bounds, also of a large one', () => {
    const { world, moves } = live(600, 1, 400);
    for (const project of world.projects) expect(world.prompts(project)?.size).toBeLessThan(700);
    expect(count(moves, /ABSENT/, /PENDING/)).toBeGreaterThan(500);
    expect(count(moves, /RUNNING/, /COMPLETED/)).toBeGreaterThan(500);
  });

  it('moves datasets, and leaves those without a status alone', () => {
    const moves = live(800).moves.filter(({ id }) => id.startsWith('dataset'));
    expect(new Set(moves.map(({ to }) => to))).toContain('COMPLETED');
    expect(moves.filter(({ from, to }) => [from, to].includes('NONE'))).toEqual([]);
  });

  it('is the same with the same seed', () => {
    const { moves } = live(300, 7);
    expect(live(300, 7).moves).toEqual(moves);
    expect(live(300, 8).moves).not.toEqual(moves);
  });
});
