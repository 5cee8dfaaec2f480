// Every form of a key that docs/security.md promises to hide, written by hand to be independent of the product.

/** Writes one character of a key, below U+0100. */
export type WriteCharacter = (character: string) => string;

/** Ways to write one character that do not depend on its neighbours. */
export const CHARACTER_FORMS: Readonly<Record<string, WriteCharacter>> = {
  'percent-encoded': (character) => percent(Buffer.from(character)),
  'percent-encoded in upper case': (character) => percent(Buffer.from(character)).toUpperCase(),
  'percent-encoded as Latin-1': (character) => percent(Buffer.from(character, 'latin1')),
  'percent-encoded in the way of escape()': (character) => `%u${hex(character, 4)}`,
  'escaped as \\u': (character) => `\\u${hex(character, 4)}`,
  'escaped as \\u in upper case': (character) => `\\u${hex(character, 4).toUpperCase()}`,
  'escaped as \\x': (character) => `\\x${hex(character, 2)}`,
  'as decimal entities': (character) => `&#${character.charCodeAt(0)};`,
  'as decimal entities with zeros': (character) => `&#000${character.charCodeAt(0)};`,
  'as hexadecimal entities': (character) => `&#x${hex(character, 2)};`,
  'as hexadecimal entities with zeros in upper case': (character) =>
    `&#X000${hex(character, 2).toUpperCase()};`,
};

const NAMED: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
  '/': '&sol;',
  '\\': '&bsol;',
  '%': '&percnt;',
  '+': '&plus;',
  '=': '&equals;',
  é: '&eacute;',
};
const SPECIAL = /[^A-Za-z0-9]/g;

export const KEY_FORMS: Readonly<Record<string, (key: string) => string>> = {
  plain: (key) => key,
  ...Object.fromEntries(
    Object.entries(CHARACTER_FORMS).flatMap(([name, write]) => [
      [`${name}, all of it`, (key: string) => Array.from(key, write).join('')],
      [`${name}, special characters only`, (key: string) => key.replace(SPECIAL, write)],
    ]),
  ),
  'escaped as \\u in JSON in JSON in JSON': (key) =>
    Array.from(key, (each) => `\\\\\\\\u${hex(each, 4)}`).join(''),
  'for a URL': encodeURIComponent,
  'for a URL, twice': (key) => encodeURIComponent(encodeURIComponent(key)),
  'for a URL, four times': (key) =>
    encodeURIComponent(encodeURIComponent(encodeURIComponent(encodeURIComponent(key)))),
  'as of a form': (key) => new URLSearchParams([['k', key]]).toString().slice(2),
  'in UTF-8 read as Latin-1': (key) => Buffer.from(key).toString('latin1'),
  'as JSON': (key) => json(key),
  'as JSON in JSON': (key) => json(json(key)),
  'as JSON in JSON in JSON': (key) => json(json(json(key))),
  'as JSON with slashes escaped': (key) => json(key).replaceAll('/', '\\/'),
  'as a string of JavaScript in single quotes': (key) => key.replaceAll(/[\\']/g, '\\$&'),
  'with a backslash before each special character': (key) => key.replace(SPECIAL, '\\$&'),
  'as HTML': (key) => key.replaceAll(/[&<>"]/g, named),
  'as HTML with &#39;': (key) =>
    key.replaceAll(/[&<>"']/g, (each) => (each === "'" ? '&#39;' : named(each))),
  'as HTML with names': (key) => key.replaceAll(/[&<>"'/\\%+=é]/g, named),
  'as HTML without semicolons': (key) =>
    key.replaceAll(/[&<>"]/g, (each) => named(each).slice(0, -1)),
  'as HTML in capitals': (key) => key.replaceAll(/[&<>"]/g, (each) => named(each).toUpperCase()),
  'as HTML in HTML': (key) => key.replaceAll(/[&<>"]/g, named).replaceAll('&', '&amp;'),
  'as decimal entities without semicolons': (key) =>
    Array.from(key, (each) => `&#${each.charCodeAt(0)}`).join(''),
  'as hexadecimal entities without semicolons': (key) =>
    Array.from(key, (each) => `&#x${hex(each, 2)}`).join(''),
  'as JSON for a URL': (key) => encodeURIComponent(json(key)),
  'as HTML in JSON': (key) => json(key.replaceAll(/[&<>"]/g, named)),
  'as JSON in HTML': (key) => json(key).replaceAll(/[&<>"]/g, named),
  'in hexadecimal': (key) => Buffer.from(key).toString('hex'),
  'in hexadecimal in upper case': (key) => Buffer.from(key).toString('hex').toUpperCase(),
  'in hexadecimal in upper and lower case': (key) =>
    Buffer.from(key)
      .toString('hex')
      .replaceAll(/../g, (byte, at: number) => (at % 4 === 0 ? byte.toUpperCase() : byte)),
  'in hexadecimal as Latin-1': (key) => Buffer.from(key, 'latin1').toString('hex'),
  'in base64': (key) => base64(key),
  'in base64 without padding': (key) => base64(key).replaceAll('=', ''),
  'in base64 as Latin-1': (key) => Buffer.from(key, 'latin1').toString('base64'),
  'in base64 after 1 byte': (key) => base64(`:${key}`),
  'in base64 after 2 bytes': (key) => base64(`u:${key}`),
  'in base64 between others': (key) => base64(`user:${key}:and more`),
  'in base64 for a URL': (key) => encodeURIComponent(base64(key)),
  'in base64 as JSON with slashes escaped': (key) => base64(key).replaceAll('/', '\\/'),
  'in base64url': (key) => Buffer.from(key).toString('base64url'),
  'in base64url after 1 byte': (key) => Buffer.from(`:${key}`).toString('base64url'),
  'in base64url after 2 bytes': (key) => Buffer.from(`u:${key}`).toString('base64url'),
};

function named(character: string): string {
  return NAMED[character] ?? character;
}

function json(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

function hex(character: string, digits: number): string {
  return character.charCodeAt(0).toString(16).padStart(digits, '0');
}

function percent(bytes: Iterable<number>): string {
  return Array.from(bytes, (byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
}
