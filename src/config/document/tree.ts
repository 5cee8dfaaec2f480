/** A mapping of a file as it was read, before anything is known of its content. Has no prototype. */
export type Tree = Readonly<Record<string, unknown>>;

export function isMapping(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const NOTHING: Tree = Object.freeze(Object.create(null));

/** The mapping under a key, an empty one if something else is there. */
export function mappingAt(tree: Tree, key: string): Tree {
  const value = tree[key];
  return isMapping(value) ? value : NOTHING;
}
