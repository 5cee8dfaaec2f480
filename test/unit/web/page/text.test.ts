import { describe, expect, it } from 'vitest';
import { ago, shareText, untrustedMessage, untrustedName } from '../../../../src/web/page/text.ts';
import { duration } from '../../../../src/domain/words.ts';
import { HOSTILE } from '../../../support/page/scenarios.ts';
import { HOUR, MINUTE, NIGHT, SECOND } from '../../../support/page/world.ts';

const render = async (html: ReturnType<typeof untrustedName>) => String(await html);
const shown = (inner: string) => `<bdi class="text">${inner}</bdi>`;

describe('untrustedName', () => {
  it.each([
    ['checkout-bot', 'checkout-bot'],
    ['<script>alert(1)</script>', '&lt;script&gt;alert(1)&lt;/script&gt;'],
    [`a"b'c&amp;`, 'a&quot;b&#39;c&amp;amp;'],
    ['\u202Etxt', '\\u202etxt'],
    ['a\nb', 'a⏎b'],
    ['a\tb', 'a\\tb'],
    ['   ', '&quot;   &quot;'],
    ['\u200D', '&quot;\u200D&quot;'],
    ['می‌خواهم', 'می‌خواهم'],
  ])('renders %j as %s', async (raw, expected) => {
    expect(await render(untrustedName(raw))).toBe(shown(expected));
  });

  it('cuts a long name to 80 whole characters, and shows all of it when unfolded', async () => {
    const long = '😀'.repeat(1024);

    const html = await render(untrustedName(long));

    expect(html).toContain(`<summary>${shown(`${'😀'.repeat(80)}…`)}</summary>`);
    expect(html).toContain(shown(long));
  });

  it.each(HOSTILE)(
    'renders %j as well-formed text without foreign markup or control characters',
    async (raw) => {
      const html = await render(untrustedName(raw));

      const own =
        /<\/?(?:bdi class="text"|bdi|details class="fold"|details|summary|div class="whole"|div|p class="quiet"|p)>/g;
      expect(html.replaceAll(own, '')).not.toMatch(/[<>"']/);
      expect(html).not.toMatch(/[[\p{Cc}\p{Bidi_Control}]--\n]/v);
      expect(html.isWellFormed()).toBe(true);
    },
  );

  it('renders an empty name as empty text', async () => {
    expect(await render(untrustedName(''))).toBe(shown(''));
  });
});

describe('untrustedMessage', () => {
  it('shows several lines as one line that unfolds to all of them', async () => {
    const html = await render(untrustedMessage('first\r\nsecond\n\tthird', 1000));

    expect(html).toContain(String.raw`first⏎second⏎\tthird`);
    expect(html).toContain(shown('first\nsecond\n\tthird'));
  });

  it('cuts a long message, and says that the API has the rest', async () => {
    const html = await render(untrustedMessage('x'.repeat(5000), 4000));

    expect(html).toContain(shown(`${'x'.repeat(4000)}…`));
    expect(html).toContain('The rest is in the JSON of the API.');
  });

  it.each(['\u202E\u0000', '"\u0000', '\uD800x'])(
    'renders 2,731 repetitions of %j in less than 40,000 bytes',
    async (pair) => {
      const html = await render(untrustedMessage(pair.repeat(2731), 4000));

      expect(Buffer.byteLength(html)).toBeLessThan(40_000);
    },
  );
});

it.each([
  [999, 'less than 1 s'],
  [59_999, '59 s'],
  [MINUTE, '1 min'],
  [HOUR + 5 * MINUTE + 9 * SECOND, '1 h 5 min'],
  [HOUR + 9 * SECOND, '1 h'],
  [52 * HOUR + 59 * MINUTE, '2 d 4 h'],
  [90 * 24 * HOUR, '90 d'],
])('duration formats %i ms as %s', (ms, expected) => {
  expect(duration(ms)).toBe(expected);
});

it.each([
  [NIGHT, 'now'],
  [NIGHT - 4 * MINUTE, '4 min ago'],
  [NIGHT + 5 * SECOND, 'in 5 s'],
])('ago formats the epoch time %i relative to the current time', (ms, expected) => {
  expect(ago(ms, NIGHT)).toBe(expected);
});

it.each([
  [1, 1, '100 %'],
  [1, 3, '33 %'],
  [1, 1000, 'less than 1 %'],
  [999, 1000, 'more than 99 %'],
  [99, 100, '99 %'],
])('shareText formats %d of %d as %s', (count, total, text) => {
  expect(shareText(count, total)).toBe(text);
});
