import { expect, it } from 'vitest';
import { simulation } from '../../proof/simulation.ts';

it(
  'a daemon and its faults in virtual time, twice with the same trace',
  { timeout: 300_000 },
  async () => {
    const short = { short: true, seed: 1, print: () => {}, part: 'daemon' };
    await expect(simulation.run(short)).resolves.toEqual(expect.any(Array));
  },
);
