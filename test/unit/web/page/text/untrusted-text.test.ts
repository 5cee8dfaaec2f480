import { describe, expect, it } from 'vitest';
import {
  untrustedText,
  untrustedMessage,
  untrustedName,
} from '../../../../../src/web/page/text/untrusted-text.ts';
import { HOSTILE } from '../../../../support/page/scenarios.ts';

const render = async (html: ReturnType<typeof untrustedName>) => String(await html);
const mark = (title: string, shown: string) =>
  `<span class="mark" title="${title}">${shown}</span>`;
const text = (inner: string) => `<bdi class="text">${inner}</bdi>`;

describe('untrustedName', () => {
  it.each([
    ['checkout-bot', 'checkout-bot'],
    ['<script>alert(1)</script>', '&lt;script&gt;alert(1)&lt;/script&gt;'],
    [`a"b'c&amp;`, 'a&quot;b&#39;c&amp;amp;'],
    ['\u202Etxt', `${mark('U+202E right-to-left override', '⟨U+202E⟩')}txt`],
    ['a\u0000b', `a${mark('U+0000 null', '⟨U+0000⟩')}b`],
    ['\u001B[31m', `${mark('U+001B escape', '⟨U+001B⟩')}[31m`],
    ['a\nb', `a${mark('U+000A line break', '⏎')}b`],
    ['a\tb', `a${mark('U+0009 tab', '⟨U+0009⟩')}b`],
    ['\u200B\u200B\u200B', mark('U+200B zero width space', '⟨U+200B⟩×3')],
    ['a\u00A0b', `a${mark('U+00A0 no-break space', '⟨U+00A0⟩')}b`],
    ['a\uD800b', `a${mark('U+D800', '⟨U+D800⟩')}b`],
    ['\uDC00\uD800', mark('U+DC00', '⟨U+DC00⟩') + mark('U+D800', '⟨U+D800⟩')],
    ['\u3164', mark('U+3164', '⟨U+3164⟩')],
    ['\u{E0041}', mark('U+E0041', '⟨U+E0041⟩')],
    [' a b ', `${mark('U+0020', '⟨U+0020⟩')}a b${mark('U+0020', '⟨U+0020⟩')}`],
    ['   ', mark('U+0020', '⟨U+0020⟩×3')],
    ['\u200D', mark('U+200D', '⟨U+200D⟩')],
    ['👩‍👩‍👧‍👦🏳️‍🌈', '👩‍👩‍👧‍👦🏳️‍🌈'],
    ['שלום', 'שלום'],
    ['می‌خواهم', 'می‌خواهم'],
  ])('renders %j as %s', async (raw, expected) => {
    expect(await render(untrustedName(raw))).toBe(text(expected));
  });

  it('cuts a long name to 80 whole characters, and shows all of it when unfolded', async () => {
    const long = '😀'.repeat(1024);

    const html = await render(untrustedName(long));

    expect(html).toContain(`<summary>${text(`${'😀'.repeat(80)}…`)}</summary>`);
    expect(html).toContain(text(long));
  });

  it.each(HOSTILE)(
    'renders %j as well-formed text without foreign markup or control characters',
    async (raw) => {
      const html = await render(untrustedName(raw));

      const own =
        /<\/?(?:bdi class="text"|bdi|span class="mark" title="U\+[^"<>]*"|span|details class="fold"|details|summary|div class="whole"|div|p class="quiet"|p)>/g;
      expect(html.replaceAll(own, '')).not.toMatch(/[<>"']/);
      expect(html).not.toMatch(/[[\p{Cc}\p{Bidi_Control}]--\n]/v);
      expect(html.isWellFormed()).toBe(true);
    },
  );

  it('renders an empty name as empty text', async () => {
    expect(await render(untrustedName(''))).toBe(text(''));
  });
});

describe('untrustedMessage', () => {
  it('shows several lines as one line that unfolds to all of them', async () => {
    const html = await render(untrustedMessage('first\r\nsecond\n\tthird', 1000));

    expect(html).toContain(`first${mark('U+000A line break', '⏎')}second`);
    expect(html).toContain(text('first\nsecond\n\tthird'));
  });

  it('cuts a message at its budget, and says that the API has the rest', async () => {
    const html = await render(untrustedMessage('x'.repeat(5000), 4000));

    expect(html).toContain(text(`${'x'.repeat(4000)}…`));
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

it('untrustedText reports whether the whole text fits into the limit', () => {
  expect(untrustedText('abc', 3, 'one line').isWhole).toBe(true);
  expect(untrustedText('abcd', 3, 'one line').isWhole).toBe(false);
});
