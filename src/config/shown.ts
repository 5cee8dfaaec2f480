/** No valid zone, address, level, duration or size is longer. */
const MAX_LENGTH = 40;
/** Neither what a login has (`@`) nor what no option has. */
const PLAIN = /^[\w.:/+*[\] -]+$/;
const MAX_ID_LENGTH = 64;

/**
 * `, not …` with a wrong value of an option that holds no secret; nothing for one that is longer than such values are or has
 * other characters. A short key that was written there by mistake can look like one of them, and is shown.
 */
export function butIsValue(input: unknown): string {
  if (typeof input === 'number' || typeof input === 'boolean') return `, not ${String(input)}`;
  if (typeof input !== 'string' || input.length > MAX_LENGTH || !PLAIN.test(input)) return '';
  return `, not ${JSON.stringify(input)}`;
}

/** An id, in quotes; the start of a long one. */
export function shownId(id: string): string {
  return JSON.stringify(id.length > MAX_ID_LENGTH ? `${id.slice(0, MAX_ID_LENGTH)}…` : id);
}

/**
 * The name of an environment variable; undefined where it is likely the secret itself, written in the place of the name:
 * what names are not made of, or capitals and digits in one run, as keys of some services are.
 */
function shownVariable(name: string): string | undefined {
  if (!/^[A-Z_][A-Z0-9_]{0,63}$/.test(name)) return undefined;
  return name.includes('_') || !/\d/.test(name) ? name : undefined;
}

/** What is wrong with an option that names a variable without a value, as the end of a sentence about the option. */
export function unsetVariable(name: string): string {
  const shown = shownVariable(name);
  return shown === undefined
    ? 'names an environment variable that is not set or empty'
    : `names the environment variable ${shown}, which is not set or empty`;
}

/** Whether a key can be shown. Anything else may be a value, an API key even, that a missing space made part of a name. */
export function isPlainKey(key: string): boolean {
  return /^\w[\w-]{0,40}$/.test(key);
}
