/** Limits what is read of all bodies in one turn of the event loop. */
export interface TurnLimit {
  /** Counts bytes. Returns a promise that resolves in the next turn and never rejects, if this turn has had enough. */
  readonly take: (bytes: number) => Promise<void> | undefined;
}

/** Creates a limit of about so many bytes: every connection may add one piece. */
export function createTurnLimit(bytesPerTurn: number): TurnLimit {
  let taken = 0;
  let nextTurn: PromiseWithResolvers<void> | undefined;

  function startTurn(): void {
    taken = 0;
    nextTurn?.resolve();
    nextTurn = undefined;
  }

  return {
    take: (bytes) => {
      if (taken === 0) setImmediate(startTurn);
      taken += bytes;
      if (taken < bytesPerTurn) return undefined;
      nextTurn ??= Promise.withResolvers();
      return nextTurn.promise;
    },
  };
}
