import { describe, expect, it } from 'vitest';
import { PROMPT_STATUSES } from '../../../src/domain/status.ts';
import { SERVICE_STATUSES } from '../../../src/simulator/world/status-changes.ts';
import { World, type WorldOptions } from '../../../src/simulator/world/world.ts';

function lived(steps: number, options: Partial<WorldOptions> = {}): World {
  let time = Date.UTC(2026, 0, 1);
  const world = new World({ now: () => time, ...options });
  for (let step = 0; step < steps; step += 1) {
    time += 1000;
    world.step();
  }
  return world;
}

describe('A world that changes by itself', () => {
  it('has every status that the daemon reads', () => {
    const statuses: typeof PROMPT_STATUSES = [...SERVICE_STATUSES, 'UNKNOWN'];
    expect(statuses).toEqual(PROMPT_STATUSES);
  });

  it('makes the same moves from the same seed', () => {
    const moves = lived(300, { seed: 7 }).moves();

    expect(moves.length).toBeGreaterThan(200);
    expect(lived(300, { seed: 7 }).moves()).toEqual(moves);
    expect(lived(300, { seed: 8 }).moves()).not.toEqual(moves);
  });

  it.each([
    ['PENDING', 'RUNNING'],
    ['RUNNING', 'COMPLETED'],
    ['RUNNING', 'FAILED'],
    ['COMPLETED', 'RUNNING'],
    ['FAILED', 'PENDING'],
    ['ABSENT', 'PENDING'],
    ['ABSENT', 'FAILED'],
    ['RUNNING', 'ABSENT'],
  ])('moves prompts from %s to %s', (from, to) => {
    const moves = lived(1500).moves();

    expect(moves.some((move) => move.from === from && move.to === to)).toBe(true);
  });

  it('moves datasets, and leaves those without a status alone', () => {
    const world = lived(1500);
    const moves = world.moves().filter((move) => move.kind === 'dataset');

    expect(new Set(moves.map((move) => move.to))).toContain('COMPLETED');
    expect(moves.filter((move) => move.from === 'NONE')).toEqual([]);
    for (const project of world.projects) {
      expect([...(world.datasets(project)?.values() ?? [])].map((one) => one.status)).toContain(
        undefined,
      );
    }
  });

  it('leaves some prompts in RUNNING forever, but at most about one in twenty', () => {
    const settled = { arrivals: 0, rerun: 0.2, stick: 0.5 };
    const world = lived(2000, { promptsPerProject: 40, rates: settled });
    const lastMoves = new Map(world.moves().map((move) => [move.id, move]));
    const stuck = [...lastMoves.values()].filter(
      (move) => move.to === 'RUNNING' && move.at < world.now() - 500_000,
    );

    expect(stuck.length).toBeGreaterThan(0);
    expect(stuck.length).toBeLessThanOrEqual(120 * 0.05 + 1);
  });

  it('gives every FAILED prompt an error_info, and no other', () => {
    const world = lived(500);
    const prompts = world.projects.flatMap((id) => Array.from(world.prompts(id)?.values() ?? []));

    expect(prompts.some((prompt) => prompt.status === 'FAILED')).toBe(true);
    for (const { status, error_info } of prompts) {
      expect(typeof error_info?.error_id).toBe(status === 'FAILED' ? 'string' : 'undefined');
    }
  });

  it('records moves that form a chain for each prompt and end at its status', () => {
    const world = lived(800, { oddIds: true });
    const last = new Map<string, string>();
    for (const { id, kind, from, to } of world.moves()) {
      expect(last.get(`${kind} ${id}`) ?? from).toBe(from);
      last.set(`${kind} ${id}`, to);
    }

    for (const project of world.projects) {
      for (const prompt of world.prompts(project)?.values() ?? []) {
        expect(last.get(`prompt ${prompt.id}`) ?? prompt.status).toBe(prompt.status);
      }
    }
  });

  it('numbers its moves without gaps, and returns only those after a given number', () => {
    const world = lived(200);

    expect(world.moves().map((move) => move.seq)).toEqual(world.moves().map((_, n) => n + 1));
    expect(world.moves(10)).toEqual(world.moves().slice(10));
    expect(world.moves(world.moves().length)).toEqual([]);
  });
});

describe('A world that is changed by calls', () => {
  it('records each actual change, but not the initial content', () => {
    const world = new World({ now: () => 42, projects: ['p'], promptsPerProject: 1 });

    world.addPrompt('p', { id: 'mine' });
    world.setStatus('p', 'mine', 'RUNNING');
    world.setStatus('p', 'mine', 'RUNNING');
    world.removePrompt('p', 'mine');

    expect(world.moves()).toEqual([
      { seq: 1, project: 'p', kind: 'prompt', id: 'mine', from: 'ABSENT', to: 'PENDING', at: 42 },
      { seq: 2, project: 'p', kind: 'prompt', id: 'mine', from: 'PENDING', to: 'RUNNING', at: 42 },
      { seq: 3, project: 'p', kind: 'prompt', id: 'mine', from: 'RUNNING', to: 'ABSENT', at: 42 },
    ]);
  });

  it('accepts any status and any given error_info', () => {
    const world = new World({ now: () => 0, projects: ['p'], promptsPerProject: 0 });
    const id = world.addPrompt('p', { status: 'PAUSED' });

    world.setStatus('p', id, 'FAILED', { error_id: 'E', error_msg: 'm' });
    expect(world.prompts('p')?.get(id)?.error_info).toEqual({ error_id: 'E', error_msg: 'm' });

    world.setStatus('p', id, 'FAILED', null);
    expect(world.prompts('p')?.get(id)?.error_info).toBeNull();
    expect(
      world
        .prompts('p')
        ?.get(id)
        ?.history.map((entry) => entry.status),
    ).toEqual(['PAUSED', 'FAILED', 'FAILED']);
  });

  it.each<[string, (world: World) => void]>([
    ['There is no project "q".', (world) => world.addPrompt('q')],
    ['Project "p" exists already.', (world) => world.addProject('p')],
    ['Project "p" has no prompt "x".', (world) => world.setStatus('p', 'x', 'FAILED')],
    ['Project "p" has no dataset "x".', (world) => world.removeDataset('p', 'x')],
    [
      'Prompt "twin" exists already.',
      (world) => {
        world.addProject('q');
        world.addPrompt('p', { id: 'twin' });
        world.addPrompt('q', { id: 'twin' });
      },
    ],
  ])('rejects an impossible change with the error: %s', (message, act) => {
    const world = new World({ now: () => 0, projects: ['p'], promptsPerProject: 0 });

    expect(() => act(world)).toThrow(message);
  });
});
