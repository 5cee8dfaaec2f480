/** Waiting items, in one line for each key; the lines are served in turn. */
export interface WaitingLines<Item> {
  readonly isEmpty: () => boolean;
  /**
   * Adds an item at the end of its line. Returns the item that does not fit: this one if its line is full, or the newest
   * item of the longest line if all lines together are full.
   */
  add(key: string, item: Item): Item | undefined;
  /** Takes the first item of the line whose turn it is. */
  take(): Item | undefined;
  remove(key: string, item: Item): void;
}

export interface WaitingLimits {
  /** Maximum number of items in all lines together. */
  readonly maxWaiting: number;
  /** Maximum number of items in one line. */
  readonly maxWaitingPerKey: number;
}

/** Creates empty lines. No key can displace the only item of another key, however many items it adds. */
export function createWaitingLines<Item>({
  maxWaiting,
  maxWaitingPerKey,
}: WaitingLimits): WaitingLines<Item> {
  /** Lines that are not empty, in the order in which they are served. */
  const lines = new Map<string, Item[]>();
  let count = 0;

  function lengthOf(key: string): number {
    return lines.get(key)?.length ?? 0;
  }

  /** The key of the longest line; this key if no line is longer than its line. */
  function longestOr(key: string): string {
    let longest = key;
    for (const each of lines.keys()) if (lengthOf(each) > lengthOf(longest)) longest = each;
    return longest;
  }

  function remove(key: string, index: number): Item | undefined {
    const line = lines.get(key) ?? [];
    const [item] = line.splice(index, 1);
    count -= 1;
    if (line.length === 0) lines.delete(key);
    return item;
  }

  return {
    isEmpty: () => count === 0,
    add: (key, item) => {
      const line = lines.get(key) ?? [];
      if (line.length >= maxWaitingPerKey) return item;
      line.push(item);
      lines.set(key, line);
      count += 1;
      return count > maxWaiting ? remove(longestOr(key), -1) : undefined;
    },
    take: () => {
      const [next] = lines;
      if (next === undefined) return undefined;
      const [key, line] = next;
      const item = remove(key, 0);
      if (lines.delete(key)) lines.set(key, line);
      return item;
    },
    remove: (key, item) => {
      const index = lines.get(key)?.indexOf(item) ?? -1;
      if (index !== -1) remove(key, index);
    },
  };
}
