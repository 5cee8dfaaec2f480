/** Reproducible random numbers: the same seed gives the same sequence on every machine. */
export interface Random {
  /** True with this probability, 0 to 1. */
  chance(probability: number): boolean;
  pick<T>(list: readonly [T, ...T[]]): T;
  /** Returns a whole number that is `mean` on average: 2.3 gives 3 in three of ten cases, otherwise 2. */
  roundRandomly(mean: number): number;
}

/** Mulberry32: 32 bits of state, which is plenty for a simulation. */
export function createRandom(seed: number): Random {
  let state = seed | 0;
  function next(): number {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
  return {
    chance: (probability) => next() < probability,
    pick: (list) => list[Math.floor(next() * list.length)] ?? list[0],
    roundRandomly: (mean) => Math.floor(mean + next()),
  };
}
