/** Items by client, each client's in the order in which they came. */
export interface ItemsByClient<Item> {
  readonly size: number;
  of(client: string): ReadonlySet<Item>;
  all(): IteratorObject<Item>;
  /** The items of the client that has the most. */
  largest(): ReadonlySet<Item>;
  /** Adds an item behind the others of its client. */
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
