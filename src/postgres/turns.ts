/** So many at a time, the others in the order in which they came, however long that takes. */
export interface Turns {
  /** Does this when it is its turn. */
  during<Result>(work: () => Promise<Result>): Promise<Result>;
}

export function createTurns(most: number): Turns {
  const waiting: (() => void)[] = [];
  let free = most;

  function giveBack(): void {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  }

  return {
    during: async (work) => {
      if (free > 0) free -= 1;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      try {
        return await work();
      } finally {
        giveBack();
      }
    },
  };
}
