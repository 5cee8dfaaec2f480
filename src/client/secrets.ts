import { cleanUnicode } from '../domain/visible.ts';

/** Returns the text with each API key replaced by `[redacted]`. */
export type Scrub = (text: string) => string;

const ENTITY_NAMES: Readonly<Record<string, string>> = {
  '&': 'amp',
  '<': 'lt',
  '>': 'gt',
  '"': 'quot',
  "'": 'apos',
};

/**
 * Creates a function that replaces these keys, of printable ASCII, by `[redacted]`. It finds them as they are,
 * percent-encoded, with the escapes of JSON and with those of HTML (docs/security.md#which-forms-of-a-key-are-hidden).
 */
export function createScrub(keys: readonly string[]): Scrub {
  // The longer one first: it may begin with the other.
  const forms = keys.toSorted((one, other) => other.length - one.length).flatMap(formsOf);
  const pattern = new RegExp([...new Set(forms)].join('|'), 'g');
  return (text) => text.replaceAll(pattern, '[redacted]');
}

/** Returns expressions for a key. One has all backslashes doubled: if each could be, a run of them would take exponential time. */
function formsOf(key: string): readonly string[] {
  return ['\\\\', '\\'].map((backslash) =>
    Array.from(key, (character) => formOf(character, backslash)).join(''),
  );
}

function formOf(character: string, backslash: string): string {
  // Nothing escapes these.
  if (/[A-Za-z0-9]/.test(character)) return RegExp.escape(character);
  const code = character.charCodeAt(0);
  const hex = code.toString(16).replaceAll(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`);
  const escapes = [`%${hex}`, `\\\\u00${hex}`, `&#${code};`, `&#x${hex};`];
  const name = ENTITY_NAMES[character];
  if (name !== undefined) escapes.push(`&${name};`);
  if (character === ' ') escapes.push('\\+');
  if (character === '"' || character === '/') escapes.push(`\\\\${character}`);
  const plain = RegExp.escape(character === '\\' ? backslash : character);
  return `(?:${escapes.join('|')}|${plain})`;
}

/** Returns the first `max` code points of a text. */
export function cutCodePoints(text: string, max: number): string {
  if (text.length <= max) return text;
  return Array.from(text.slice(0, 2 * max))
    .slice(0, max)
    .join('');
}

/**
 * Returns the first `max` code points of untrusted text, scrubbed of keys and clean. Scrubs before it cuts, as
 * half a key is a secret too.
 */
export function cleanText(text: string, max: number, scrub: Scrub): string {
  return cutCodePoints(cleanUnicode(scrub(text)), max);
}

/** Returns the longest prefix of a well-formed text that fits into `maxBytes` of UTF-8. */
export function cutUtf8(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes) return text;
  return text.slice(0, new TextEncoder().encodeInto(text, new Uint8Array(maxBytes)).read);
}
