/** Number of items that a loop handles in one turn of the event loop, which takes a few milliseconds. */
const ITEMS_PER_TURN = 4096;

let last: Promise<void> = Promise.resolve();

/**
 * Resolves in a turn of the event loop that no other caller has. Work of many milliseconds waits for it, so that short
 * work, such as the answer to a probe, goes on between two pieces of it.
 */
export function ownTurn(): Promise<void> {
  last = last.then(
    () =>
      new Promise((resolve) => {
        setImmediate(resolve);
      }),
  );
  return last;
}

/** Calls `handle` for each item, and waits for a turn of its own before each further slice of items. */
export async function inTurns<Item>(
  items: Iterable<Item>,
  handle: (item: Item) => void,
  itemsPerTurn = ITEMS_PER_TURN,
): Promise<void> {
  let left = itemsPerTurn;
  for (const item of items) {
    if (left === 0) {
      await ownTurn();
      left = itemsPerTurn;
    }
    handle(item);
    left -= 1;
  }
}
