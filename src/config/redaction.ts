/** No valid zone, address, level, duration or size is longer. */
const MAX_LENGTH = 40;
/** Neither what a login has (`@`) nor what no option has. */
const PLAIN = /^[\w.:/+*[\] -]+$/;
const MAX_ID_LENGTH = 64;

/**
 * `, not …` with a wrong value of an option that holds no secret; nothing for one that is longer than such values are or has
 * other characters. A short key that was written there by mistake can look like one of them, and is shown.
 */
export function actualValue(input: unknown): string {
  if (typeof input === 'number' || typeof input === 'boolean') return `, not ${String(input)}`;
  if (input === '') return ', not empty';
  return typeof input === 'string' && isPlain(input) ? `, not ${JSON.stringify(input)}` : '';
}

/** A value in quotes and a space, to stand before what is wrong with it; nothing where `actualValue` shows nothing. */
export function quoteIfSafe(text: string): string {
  return isPlain(text) ? `${JSON.stringify(text)} ` : '';
}

function isPlain(text: string): boolean {
  return text.length <= MAX_LENGTH && PLAIN.test(text);
}

/** An id, in quotes; the start of a long one. */
export function quoteId(id: string): string {
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

/** A sentence about a variable without a value; with the option that names it, where the reader does not see it. */
export function describeUnsetVariable(name: string, option?: string): string {
  const shown = shownVariable(name);
  const where = option === undefined ? '' : ` (${option})`;
  return shown === undefined
    ? `the environment variable${where} is not set or is empty; its name is not shown because it could be the secret itself`
    : `environment variable ${shown}${where} is not set or is empty`;
}

/** Whether a key can be shown. Anything else may be a value, an API key even, that a missing space made part of a name. */
export function isSafeKey(key: string): boolean {
  return /^\w[\w-]{0,40}$/.test(key);
}
