/** A mapping of a file before it is checked. Has no prototype. */
export type Tree = Readonly<Record<string, unknown>>;

export function isMapping(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const EMPTY: Tree = Object.freeze(Object.create(null));

/** Returns the mapping at a key; an empty one if the value is no mapping. */
export function mappingAt(tree: Tree, key: string): Tree {
  const value = tree[key];
  return isMapping(value) ? value : EMPTY;
}
