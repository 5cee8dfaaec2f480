import { expect, it } from 'vitest';
import { simulation } from '../../proof/simulation.ts';

it.each(['daemon', 'workers'])(
  'simulation of the part %s finds no fault and repeats its trace with the same seed',
  { timeout: 300_000 },
  async (part) => {
    const short = { short: true, seed: 1, print: () => {}, part };
    await expect(simulation.run(short)).resolves.toEqual(expect.any(Array));
  },
);
