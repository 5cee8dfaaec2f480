/** So many at a time, the others in the order in which they came. */
export interface Turns {
  /** Does this when it is its turn. @throws what {@link Patience} says, and then it was not begun */
  during<Result>(work: () => Promise<Result>): Promise<Result>;
}

/** How long one waits for a turn. */
export interface Patience {
  readonly ms: () => number;
  /** Nobody who waits when it is aborted has a turn. */
  readonly signal: AbortSignal | undefined;
  readonly error: () => Error;
}

/** Without patience one waits as long as it takes. */
export function createTurns(most: number, patience?: Patience): Turns {
  const waiting = new Set<PromiseWithResolvers<void>>();
  let free = most;

  function giveBack(): void {
    const [next] = waiting;
    if (next === undefined) {
      free += 1;
      return;
    }
    waiting.delete(next);
    next.resolve();
  }

  async function wait(): Promise<void> {
    const turn = Promise.withResolvers<void>();
    waiting.add(turn);
    const timer = patience && setTimeout(() => giveUp(turn, patience), patience.ms());
    try {
      await turn.promise;
    } finally {
      clearTimeout(timer);
    }
  }

  function giveUp(turn: PromiseWithResolvers<void>, { error }: Patience): void {
    if (waiting.delete(turn)) turn.reject(error());
  }

  patience?.signal?.addEventListener('abort', () => {
    for (const turn of waiting) giveUp(turn, patience);
  });

  return {
    during: async (work) => {
      if (free > 0) free -= 1;
      else await wait();
      try {
        return await work();
      } finally {
        giveBack();
      }
    },
  };
}
