import { expect, it } from 'vitest';
import { simulation } from '../../proof/simulation.ts';

it.each(['daemon', 'workers'])(
  'the part %s in virtual time, and what once found something, twice with the same trace',
  { timeout: 300_000 },
  async (part) => {
    const short = { short: true, seed: 1, print: () => {}, part };
    await expect(simulation.run(short)).resolves.toEqual(expect.any(Array));
  },
);
