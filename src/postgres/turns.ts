/** So many at a time, the others in the order in which they came, however long that takes. */
export interface Turns {
  take(): Promise<void>;
  giveBack(): void;
}

/** The pool would end the waiting for a connection after the time that it allows a server to answer. */
export function createTurns(most: number): Turns {
  const waiting: (() => void)[] = [];
  let free = most;
  return {
    take: async () => {
      if (free > 0) {
        free -= 1;
        return;
      }
      await new Promise<void>((resolve) => waiting.push(resolve));
    },
    giveBack: () => {
      const next = waiting.shift();
      if (next === undefined) free += 1;
      else next();
    },
  };
}
