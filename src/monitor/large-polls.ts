/** Room of one poll for the records of large listings; disposed of when the poll has ended. */
export interface LargePoll extends Disposable {
  /** Resolves when the poll may keep large listings. Never rejects. */
  readonly waitForRoom: () => Promise<void>;
}

/** Creates a function that begins a poll. Of all polls, one at a time keeps large listings, in the order of their calls. */
export function createLargePolls(): () => LargePoll {
  let last: Promise<void> = Promise.resolve();
  return () => {
    const ended = Promise.withResolvers<void>();
    let room: Promise<void> | undefined;

    function takeRoom(): Promise<void> {
      const before = last;
      last = before.then(() => ended.promise);
      return before;
    }

    return {
      // Prompts and datasets share the room of their poll. If each took its own, two polls could wait for each other.
      waitForRoom: async () => await (room ??= takeRoom()),
      [Symbol.dispose]: () => ended.resolve(),
    };
  };
}
