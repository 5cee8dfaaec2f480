/** No valid time zone, address, level, duration or size is longer. */
const MAX_LENGTH = 40;
/** Characters of valid values, without the `@` of a login. */
const PLAIN = /^[\w.:/+*[\] -]+$/;
const MAX_SHOWN_ID_LENGTH = 64;

/**
 * Returns `, not …` with the wrong value of an option that is no secret. Returns nothing for a value that is longer than
 * valid ones or has other characters, because it could be a secret. A short key of plain characters is still shown.
 */
export function actualValue(input: unknown): string {
  if (typeof input === 'number' || typeof input === 'boolean') return `, not ${String(input)}`;
  if (input === '') return ', not empty';
  return typeof input === 'string' && isPlain(input) ? `, not ${JSON.stringify(input)}` : '';
}

/** Returns a value in quotes and a space, as the subject of a message; nothing where `actualValue` returns nothing. */
export function quoteIfSafe(text: string): string {
  return isPlain(text) ? `${JSON.stringify(text)} ` : '';
}

function isPlain(text: string): boolean {
  return text.length <= MAX_LENGTH && PLAIN.test(text);
}

/** Returns an id in quotes; only the start of a long one. */
export function quoteId(id: string): string {
  return JSON.stringify(
    id.length > MAX_SHOWN_ID_LENGTH ? `${id.slice(0, MAX_SHOWN_ID_LENGTH)}…` : id,
  );
}

/**
 * Returns the name of an environment variable; undefined if it could be the secret itself, given in place of a name:
 * a text with unusual characters, or capitals and digits without a `_`, like the keys of some services.
 */
function safeVariableName(name: string): string | undefined {
  if (!/^[A-Z_][A-Z0-9_]{0,63}$/.test(name)) return undefined;
  return name.includes('_') || !/\d/.test(name) ? name : undefined;
}

/**
 * Returns a sentence about a variable that has no value.
 * @param option the option that names it; left out where the reader sees it already
 */
export function describeUnsetVariable(name: string, option?: string): string {
  const shown = safeVariableName(name);
  const where = option === undefined ? '' : ` (${option})`;
  return shown === undefined
    ? `the environment variable${where} is not set or is empty; its name is not shown because it could be the secret itself`
    : `environment variable ${shown}${where} is not set or is empty`;
}

/**
 * Whether a text could be an API key that was given in place of the path of its file: at least 8 characters without slash
 * and dot, or a long random part.
 */
export function couldBeKey(path: string): boolean {
  return path.length >= 8 && (!/[/.]/.test(path) || path.split('/').some(isLongAndRandom));
}

function isLongAndRandom(part: string): boolean {
  return part.length >= 20 && /[a-z]/.test(part) && /[A-Z]/.test(part) && /\d/.test(part);
}

/** Whether a YAML key can be shown. Other keys may contain a secret, if the space after a colon is missing. */
export function isSafeKey(key: string): boolean {
  return /^\w[\w-]{0,40}$/.test(key);
}
