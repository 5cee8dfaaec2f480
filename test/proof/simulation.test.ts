import { expect, it } from 'vitest';
import { simulation } from '../../proof/simulation.ts';

it.each(['daemon', 'workers'])(
  'simulation of the part %s finds no fault and repeats its trace with the same seed',
  { timeout: 300_000 },
  async (part) => {
    const short = { short: true, seed: 1, print: () => {}, part };
    // A fault, and another trace, reject. A part that did not run has no figures.
    const figures = new Map(await simulation.run(short));
    expect(figures.get(`${part}: seeds`)).toMatch(/, the first twice with the same trace$/);
    expect(figures.get(`${part}: transitions`)).toMatch(/^[1-9]\d*, each stored and told once$/);
  },
);
