import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createSecrets } from '../../../src/evaluation-api/secrets.ts';
import { anyText } from '../../support/any-text.ts';
import { CHARACTER_FORMS, KEY_FORMS } from '../../support/written-keys.ts';

function scrubber(...keys: readonly string[]) {
  const secrets = createSecrets();
  for (const key of keys) secrets.remember(key);
  return secrets.scrub;
}

function scrub(text: string, ...keys: readonly string[]): string {
  return scrubber(...keys)(text);
}

/** Keys of characters that must be escaped, and of texts that look like an escape. */
const KEYS = ['sé"c\\r/et+ke y', "aB3%4f&x\\9;#&amp;'<>z", 'p&lt;%25\\u0041=~more', 'Zq/+9x&d'];
const forms = Object.entries(KEY_FORMS);

describe('an API key', () => {
  it.each(forms.filter(([name]) => !name.startsWith('in base64')))(
    'is redacted when written %s',
    (_, write) => {
      for (const key of KEYS) {
        const written = write(key);
        expect(scrub(`<${written}> and <${written}>`, key)).toBe('<[redacted]> and <[redacted]>');
      }
    },
  );

  it.each(forms.filter(([name]) => name.startsWith('in base64')))(
    'is redacted, while the text encoded beside it is kept, when written %s',
    (_, write) => {
      for (const key of KEYS) {
        // What stood beside the key and the padding remain beside it.
        expect(scrub(`<${write(key)}>`, key)).toMatch(
          /^<\w{0,8}\[redacted\](?:\w{10,14}=*|(?:=|%3D)*)>$/,
        );
      }
    },
  );

  it('is redacted in any mixture of escapes', () => {
    const characters = fc.oneof(
      fc.constantFrom(...Array.from(String.raw`\%&+/"'<>;#=x0u41amplté`)),
      fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
      fc.integer({ min: 0xa1, max: 0xff }).map((code) => String.fromCharCode(code)),
    );
    const chains = fc.array(fc.constantFrom(...Object.values(CHARACTER_FORMS)), { maxLength: 3 });
    // Both ends of the key are plain, so that the text beside it cannot become a part of an escape.
    const keys = fc.array(fc.tuple(characters, chains), { minLength: 6, maxLength: 30 });
    fc.assert(
      fc.property(keys, (pairs) => {
        const key = `K${pairs.map(([character]) => character).join('')}Z-key`;
        const text = `K${pairs.map(([character, chain]) => escape(character, chain)).join('')}Z-key`;
        expect(scrub(`<${text}>`, key)).toBe('<[redacted]>');
      }),
      { numRuns: 2000 },
    );
  });

  it('is redacted in the beginning of a text exactly as in the whole text', () => {
    const key = KEYS[0] ?? '';
    const pieces = fc.oneof(
      anyText({ maxLength: 30 }),
      fc.constantFrom(...forms.map(([, write]) => write(key))),
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 12 }), fc.nat({ max: 400 }), (texts, enough) => {
        const text = texts.join('~');
        const whole = scrub(text, key);
        expect(scrubber(key)(text, enough).slice(0, enough)).toBe(whole.slice(0, enough));
      }),
      { numRuns: 2000 },
    );
  });

  it('is redacted in every written form among 256 keys, and next to the others', () => {
    const keys = Array.from({ length: 256 }, (_, index) => `key-number-${index}/é!`);
    const scrubAll = scrubber(...keys);
    for (const [index, key] of keys.entries()) {
      const [, write] = forms[index % forms.length] ?? [];
      expect(scrubAll(`<${write?.(key)}>`)).toContain('[redacted]');
    }
    expect(scrubAll(keys.join(''))).toBe('[redacted]'.repeat(256));
  });
});

function escape(character: string, chain: readonly ((character: string) => string)[]): string {
  return chain.reduce((text, write) => Array.from(text, write).join(''), character);
}

describe('a text without a key', () => {
  it('stays as it is', () => {
    const scraps = fc.constantFrom(
      '%',
      '%25',
      '\\',
      '\\u00',
      '&',
      '&amp;',
      '&#',
      ';',
      '+',
      'Ã',
      'sec',
    );
    const texts = fc.array(fc.oneof(scraps, anyText({ maxLength: 8 })));
    fc.assert(
      fc.property(texts, (parts) => {
        const text = parts.join('');
        expect(scrub(text, 'sec+et-key', 'K7&gt;%41/é')).toBe(text);
      }),
      { numRuns: 2000 },
    );
  });

  it('stays as it is when it only looks like the key', () => {
    const text = String.raw`sec.et-key SEC+ET-KEY %73 \u0073 sec%2Cet-key c2VjK2V0 7365632b65742d`;
    expect(scrub(text, 'sec+et-key')).toBe(text);
  });

  it('stays as it is when it contains only pieces of the base64 of a short key', () => {
    // For 8 characters, at least 10 of the base64 are searched for.
    const encoded = Buffer.from('password').toString('base64');
    const text = `${encoded.slice(0, 9)} ${encoded.slice(1, 10)} cGFzc3dvc passwor`;
    expect(scrub(text, 'password')).toBe(text);
  });
});

describe('several keys', () => {
  it('are redacted as the longer one if it begins with the other', () => {
    expect(scrub('abcdefgh-and-more', 'abcdefgh', 'abcdefgh-and-more')).toBe('[redacted]');
  });

  it('are redacted together if they overlap, and each on its own if they only adjoin', () => {
    expect(scrub('abcdefghijklmnop', 'abcdefghij', 'ghijklmnop')).toBe('[redacted]');
    expect(scrub('abcdefghabcdefgh', 'abcdefgh')).toBe('[redacted][redacted]');
    expect(scrub('a'.repeat(1000), 'aaaaaaaa')).toBe('[redacted]');
  });

  it('stay redacted after rotation, except the least recently used beyond 256 keys', () => {
    const keys = Array.from({ length: 257 }, (_, index) => `key-number-${index}!`);
    expect(scrub('key-number-1! key-number-256!', ...keys)).toBe('[redacted] [redacted]');
    expect(scrub('key-number-0!', ...keys)).toBe('key-number-0!');
    expect(scrub('key-number-0!', ...keys.slice(0, 256), 'key-number-0!', 'one-more-key')).toBe(
      '[redacted]',
    );
  });
});
