/** The API keys that a simulated service accepts. They can be changed while it runs. */
export interface KeyRing {
  /** Makes a key valid for one project, or for all without `project`. It replaces the earlier key of that project or of all. */
  set(key: string, project?: string): void;
  /** Makes a key invalid for every project. */
  revoke(key: string): void;
  /** Returns whether a key is valid for any project. */
  isValid(key: string): boolean;
  allows(key: string, project: string): boolean;
  /** Returns the key of a project; undefined if it is revoked. */
  keyOf(project: string): string | undefined;
}

/** The default key of a simulation. */
export const DEFAULT_KEY = 'simulated-service-key';

/** @param keys one key for all projects, or the key of each by project id */
export function createKeyRing(
  keys: string | Readonly<Record<string, string>> = DEFAULT_KEY,
): KeyRing {
  let common = typeof keys === 'string' ? keys : undefined;
  const own = new Map(typeof keys === 'string' ? [] : Object.entries(keys));
  return {
    set(key, project) {
      if (project === undefined) common = key;
      else own.set(project, key);
    },
    revoke(key) {
      if (common === key) common = undefined;
      for (const [project, ownKey] of own) if (ownKey === key) own.delete(project);
    },
    isValid: (key) => key === common || [...own.values()].includes(key),
    allows: (key, project) => key === common || key === own.get(project),
    keyOf: (project) => own.get(project) ?? common,
  };
}
