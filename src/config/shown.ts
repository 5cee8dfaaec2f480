/** Longer than any zone, address, level, duration or size that somebody may have meant. */
const MAX_LENGTH = 40;
/** Neither what a login has (`@`) nor what no option has. */
const PLAIN = /^[\w.:/+*[\] -]+$/;
const MAX_ID_LENGTH = 64;

/**
 * `, not …` with a wrong value of an option that holds no secret; nothing for one that does not look like what the option
 * holds, as a key might that was written there by mistake.
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

/** The name of an environment variable; undefined where it may be the secret itself, written in the place of the name. */
function shownVariable(name: string): string | undefined {
  return /^[A-Z_][A-Z0-9_]{0,63}$/.test(name) ? name : undefined;
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
