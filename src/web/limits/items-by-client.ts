/** Items grouped by client, in the order of their addition. */
export interface ItemsByClient<Item> {
  readonly size: number;
  of(client: string): ReadonlySet<Item>;
  all(): IteratorObject<Item>;
  /** The items of the client with the most items. */
  largest(): ReadonlySet<Item>;
  /** Adds an item after the other items of its client. */
  add(client: string, item: Item): void;
  delete(client: string, item: Item): void;
}

/** Creates an empty collection; a client without items takes no memory. */
export function createItemsByClient<Item>(): ItemsByClient<Item> {
  const groups = new Map<string, Set<Item>>();
  const none: ReadonlySet<Item> = new Set();
  let size = 0;
  return {
    get size() {
      return size;
    },
    of: (client) => groups.get(client) ?? none,
    largest: () => {
      let found = none;
      for (const group of groups.values()) if (group.size > found.size) found = group;
      return found;
    },
    all: () => groups.values().flatMap((group) => group),
    add: (client, item) => {
      const group = groups.get(client) ?? new Set();
      groups.set(client, group.add(item));
      size += 1;
    },
    delete: (client, item) => {
      const group = groups.get(client);
      if (group?.delete(item) !== true) return;
      size -= 1;
      if (group.size === 0) groups.delete(client);
    },
  };
}
