// Every form of a key that docs/security.md promises to hide, written by hand to be independent of the product.

/** Characters that an encoding may change. */
const SPECIAL = /[^A-Za-z0-9]/g;
const NAMED: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
};

export const KEY_FORMS: Readonly<Record<string, (key: string) => string>> = {
  plain: (key) => key,
  'for a URL': encodeURIComponent,
  'for a URL, but with slashes': (key) => encodeURIComponent(key).replaceAll('%2F', '/'),
  'percent-encoded': (key) => special(key, (code) => `%${hex(code)}`),
  'percent-encoded in upper case': (key) => special(key, (code) => `%${hex(code).toUpperCase()}`),
  'as of a form': (key) => new URLSearchParams([['k', key]]).toString().slice(2),
  'as JSON': json,
  'as JSON with slashes escaped': (key) => json(key).replaceAll('/', '\\/'),
  'as JSON that is safe in HTML': (key) =>
    json(key).replaceAll(/[&<>'+]/g, (each) => `\\u00${hex(each.charCodeAt(0)).toUpperCase()}`),
  'as JSON in \\u': (key) => special(key, (code) => `\\u00${hex(code)}`),
  'as HTML': (key) => key.replaceAll(/[&<>"]/g, named),
  'as HTML with &#39;': (key) =>
    key.replaceAll(/[&<>"']/g, (each) => (each === "'" ? '&#39;' : named(each))),
  'as HTML with &apos;': (key) => key.replaceAll(/[&<>"']/g, named),
  'as HTML in decimal': (key) => special(key, (code) => `&#${code};`),
  'as HTML in hexadecimal': (key) => special(key, (code) => `&#x${hex(code)};`),
};

function special(key: string, write: (code: number) => string): string {
  return key.replaceAll(SPECIAL, (each) => write(each.charCodeAt(0)));
}

function named(character: string): string {
  return NAMED[character] ?? character;
}

function json(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

function hex(code: number): string {
  return code.toString(16).padStart(2, '0');
}
