import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createScrub } from '../../../src/client/secrets.ts';
import { anyText } from '../../support/any-text.ts';
import { KEY_FORMS } from '../../support/written-keys.ts';

/** Keys of characters that encodings change, and of texts that look like an escape. */
const KEYS = ['se"c\\r/et+ke y', "aB3%4f&x\\\\9;#&amp;'<>z", 'p&lt;%25\\u0041=~more', 'Zq/+9x&d'];

describe('an API key', () => {
  it.each(Object.entries(KEY_FORMS))('is redacted when written %s', (_, write) => {
    for (const key of KEYS) {
      const written = write(key);
      const scrub = createScrub([key, 'the-other-key']);
      expect(scrub(`<${written}> and <${written}>`)).toBe('<[redacted]> and <[redacted]>');
    }
  });

  it('is redacted whatever printable characters it has', () => {
    const characters = fc
      .integer({ min: 0x20, max: 0x7e })
      .map((code) => String.fromCharCode(code));
    const keys = fc.string({ unit: characters, minLength: 8, maxLength: 40 });
    const writes = fc.constantFrom(...Object.values(KEY_FORMS));
    fc.assert(
      fc.property(keys, writes, (key, write) => {
        expect(createScrub([key])(write(key))).toBe('[redacted]');
      }),
      { numRuns: 400 },
    );
  });

  it('is redacted together with another one that begins with it', () => {
    expect(createScrub(['abcdefgh', 'abcdefgh-and-more'])('abcdefgh-and-more')).toBe('[redacted]');
  });

  it('of backslashes takes no exponential time in a text of them', () => {
    const scrub = createScrub([`${'\\'.repeat(60)}key`]);
    expect(scrub('\\'.repeat(500))).toBe('\\'.repeat(500));
  });
});

it('a text without a key stays as it is', () => {
  const scraps = fc.constantFrom('%', '%25', '\\', '\\u00', '&', '&amp;', '&#', ';', '+', 'sec');
  const texts = fc.array(fc.oneof(scraps, anyText({ maxLength: 8 })));
  const scrub = createScrub(['sec+et-key', 'K7&gt;%41/']);
  fc.assert(
    fc.property(texts, (parts) => {
      expect(scrub(parts.join(''))).toBe(parts.join(''));
    }),
    { numRuns: 400 },
  );
  const text = String.raw`sec.et-key SEC+ET-KEY %73 \u0073 sec%2Cet-key sececet-key`;
  expect(scrub(text)).toBe(text);
});
