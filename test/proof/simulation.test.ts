import { execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { expect, it } from 'vitest';
import { playUntil } from '../../proof/simulation.ts';
import { PARTS } from '../../proof/simulation/scenario.ts';

/** CPU time of each part, seconds. One run is played whole, even if it takes longer. */
const CPU_SECONDS = 20;
/** Seeds are below this, so that they are easy to type. */
const MAX_SEED = 1_000_000;
/** Many times {@link CPU_SECONDS}: on a busy machine a process gets a small share of a core. */
const PATIENCE_MS = 20 * 60 * 1000;

// Each part has a process of its own.
it.concurrent.each(PARTS)(
  'simulation of the part %s finds no fault from a seed that each commit changes',
  async (part) => {
    const seed = seedOfCommit();
    console.log(`simulation of the part ${part} from seed ${seed}`);
    const figures = await playUntil(
      part,
      seed,
      (played) => played.cpuSeconds >= CPU_SECONDS,
      () => {},
    );
    // A finding rejects. A run in which nothing has happened would find nothing.
    expect(new Map(figures).get(`${part}: transitions`)).toMatch(/^[1-9]/);
  },
  PATIENCE_MS,
);

function seedOfCommit(): number {
  try {
    const commit = execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8', stdio: 'pipe' });
    return Number.parseInt(commit.slice(0, 8), 16) % MAX_SEED;
  } catch {
    return randomInt(MAX_SEED);
  }
}
