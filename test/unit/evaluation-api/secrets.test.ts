import { describe, expect, it } from 'vitest';
import { createSecrets } from '../../../src/evaluation-api/secrets.ts';

describe('scrubbing', () => {
  const KEY = 'sé"c\\r/et+ke y';

  function scrub(text: string, ...keys: readonly string[]): string {
    const secrets = createSecrets();
    for (const key of keys) secrets.remember(key);
    return secrets.scrub(text);
  }

  it.each([
    ['plain', KEY],
    ['as JSON', JSON.stringify(KEY).slice(1, -1)],
    ['as JSON of JSON', JSON.stringify(JSON.stringify(KEY).slice(1, -1)).slice(1, -1)],
    ['as JSON with all that can be escaped', String.raw`s\u00E9\"c\\r\/et\u002bke\u0020y`],
    ['percent-encoded', encodeURIComponent(KEY)],
    ['percent-encoded in lower case', encodeURIComponent(KEY).toLowerCase()],
    ['percent-encoded twice', encodeURIComponent(encodeURIComponent(KEY))],
    ['percent-encoded as Latin-1', encodeURIComponent(KEY).replace('%C3%A9', '%e9')],
    ['as of a form', encodeURIComponent(KEY).replace('%20', '+')],
    ['percent-encoded wholly', 's%C3%A9%22%63%5c%72%2f%65%74%2B%6b%65%20%79'],
  ])('finds a key %s', (_, written) => {
    expect(scrub(`<${written}> and <${written}>`, KEY)).toBe('<[redacted]> and <[redacted]>');
  });

  it('leaves alone what only looks like a key', () => {
    const text = 'sec.et-key SEC+ET-KEY %73 \\u0073';
    expect(scrub(text, 'sec+et-key')).toBe(text);
  });

  it('hides the longer of two keys of which one begins with the other', () => {
    expect(scrub('abcdefgh-and-more', 'abcdefgh', 'abcdefgh-and-more')).toBe('[redacted]');
  });

  it('knows rotated keys still, and forgets the oldest of very many', () => {
    const keys = Array.from({ length: 257 }, (_, index) => `key-number-${index}!`);
    expect(scrub('key-number-1! key-number-256!', ...keys)).toBe('[redacted] [redacted]');
    expect(scrub('key-number-0!', ...keys)).toBe('key-number-0!');
    expect(scrub('key-number-0!', ...keys.slice(0, 256), 'key-number-0!', 'one-more-key')).toBe(
      '[redacted]',
    );
  });
});
