import type { OwnershipChange } from '../coordination/share.ts';

/**
 * Returns a function that gathers changes of ownership, and in the next turn of the event loop calls `listener` once with the
 * projects that were taken or dropped; with undefined if a change names none, because then any project may be affected.
 */
export function gatherChanges(
  listener: (changed: readonly string[] | undefined) => void,
): (change: OwnershipChange) => void {
  /** The names in each change since the last call. */
  let changes: (readonly string[])[] = [];

  function deliver(): void {
    const names = changes.some((named) => named.length === 0) ? undefined : changes.flat();
    changes = [];
    listener(names && [...new Set(names)]);
  }

  return ({ taken, dropped }) => {
    if (changes.length === 0) setImmediate(deliver);
    changes.push([...taken.map(({ project }) => project), ...dropped]);
  };
}
