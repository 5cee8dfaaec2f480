import { createHmac, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { runInNewContext } from 'node:vm';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { AdaptiveCard, SerializationContext } from 'adaptivecards';
import { createTransport } from 'nodemailer';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { mailOf } from '../../../src/notify/format/email.ts';
import { slackBody } from '../../../src/notify/format/slack.ts';
import { teamsBody } from '../../../src/notify/format/teams.ts';
import { webhookBody, webhookHeaders } from '../../../src/notify/format/webhook.ts';
import { parseSigningSecret } from '../../../src/config/secrets.ts';
import { type Message, messageJsonSchema } from '../../../src/notify/message.ts';
import { HOSTILE, messages, withText } from './messages.ts';

const everything = [...messages, ...HOSTILE.flatMap(withText)];
/** What evalwatch itself puts around texts: isolation of writing directions, and spaces of no width. */
const UNSAFE = /[[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}\p{Cs}]--[\n\u2068\u2069]]/v;

/** Returns all values of a key in JSON. */
function valuesOf(key: string, value: unknown): readonly unknown[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, each]) => [
    ...(name === key ? [each] : []),
    ...valuesOf(key, each),
  ]);
}

/** Returns the addresses that are not of the message. */
function foreign(message: Message, found: readonly unknown[]): readonly unknown[] {
  const own = new Set(valuesOf('url', message));
  return found.filter((url) => !own.has(url));
}

describe('webhook', () => {
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
  const key = parseSigningSecret(secret).value;
  const ajv = new Ajv2020({ strict: true, validateFormats: false, allowUnionTypes: true });
  const validate = ajv.compile(messageJsonSchema());

  it('sends what its JSON Schema describes, verified by its signature', () => {
    for (const message of everything) {
      const body = webhookBody(message);
      const headers = webhookHeaders(message, body, Date.now(), key);
      // The library takes seconds for the longest ones together.
      const verified =
        body.length > 1_000_000 ? JSON.parse(body) : new Webhook(secret).verify(body, headers);

      expect(verified).toEqual(JSON.parse(JSON.stringify(message)));
      expect(validate(verified) ? [] : validate.errors).toEqual([]);
      expect(body).not.toMatch(/[[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]]/v);
    }
  });

  it('is verified by the lines of docs/notifications.md', () => {
    const page = readFileSync(new URL('../../../docs/notifications.md', import.meta.url), 'utf8');
    const lines = /```js\n.*?;\n(.*?)```/s.exec(page)?.[1];
    const [message] = messages as [Message];
    const body = webhookBody(message);
    const verified = (text: string, at: number, by = secret) => {
      const headers = webhookHeaders(message, body, at, key);
      const given = { Buffer, createHmac, timingSafeEqual, headers, body: text, secret: by };
      return runInNewContext(`${lines}[isOurs, isFresh]`, given) as unknown;
    };

    expect(verified(body, Date.now())).toEqual([true, true]);
    expect(verified(`${body} `, Date.now())).toEqual([false, true]);
    expect(verified(body, Date.now(), 'whsec_AAAA')).toEqual([false, true]);
    expect(verified(body, Date.now() - 3_600_000)).toEqual([true, false]);
  });

  it('has no signature without a secret', () => {
    const [message] = messages as [Message];

    expect(webhookHeaders(message, '', 1999, undefined)).toEqual({
      'webhook-id': message.id,
      'webhook-timestamp': '1',
    });
  });

  it.each([
    '',
    'secret',
    secret.slice(6),
    'whsec_c2hvcnQ=',
    `${secret}!`,
    `whsec_${'A'.repeat(100)}`,
  ])('does not take %j for a secret', (text) => {
    expect(parseSigningSecret(text).value).toBeUndefined();
  });
});

interface SlackText {
  readonly type: string;
  readonly text: string | { readonly text: string };
  readonly url?: string;
}

describe('slack', () => {
  const read = (message: Message) =>
    JSON.parse(slackBody(message)) as {
      readonly text: string;
      readonly blocks: readonly (Readonly<Record<string, unknown>> & { readonly type: string })[];
    };

  it("keeps Slack's limits", () => {
    for (const message of everything) {
      const { text, blocks } = read(message);

      expect(text.length).toBeLessThanOrEqual(2000);
      expect(blocks.length).toBeLessThanOrEqual(50);
      for (const block of blocks) {
        const texts = valuesOf('text', block).filter((each) => typeof each === 'string');
        expect(texts.join('').length).toBeLessThanOrEqual(block.type === 'header' ? 150 : 3000);
        expect(texts).not.toContain('');
        expect(texts.join('')).not.toMatch(UNSAFE);
      }
    }
  });

  it('has only texts and its own links, and nothing that interprets them', () => {
    for (const message of everything) {
      const { blocks } = read(message);
      const types = new Set(valuesOf('type', blocks));
      const allowed = new Set(
        'header context plain_text rich_text rich_text_section rich_text_quote text link'.split(
          ' ',
        ),
      );

      expect(Array.from(types).filter((type) => !allowed.has(String(type)))).toEqual([]);
      expect(foreign(message, valuesOf('url', blocks))).toEqual([]);
    }
  });

  it('has texts from outside in the fallback as code only', () => {
    for (const message of everything) {
      const { text } = read(message);
      const [first = '', ...others] = text.split('\n');
      const last = others.at(-1) ?? '';
      const own = [first, ...others.slice(0, -1), last.replace(/^<https:[^<>|]*>$/, '')].join('\n');

      // An odd number of quotes would turn words into code, and code into words.
      for (const line of own.split('\n')) expect(line.split('`').length % 2).toBe(1);
      expect(own.replaceAll(/`[^`\n]*`|error_(?:id|info)/g, '')).not.toMatch(/[<>*_~@#[\]!|]/);
      expect(own).not.toMatch(/<|>|@(?!\u200b)/);
      expect(own).not.toMatch(UNSAFE);
      expect(own).not.toMatch(/``/);
    }
  });

  it('shows a hostile text as it is', () => {
    const [hostile] = HOSTILE;
    const [message] = withText(hostile) as [Message];
    const texts = (valuesOf('elements', read(message).blocks) as SlackText[][])
      .flat()
      .map(({ text }) => text);

    expect(texts).toContain(hostile);
  });
});

describe('teams', () => {
  it('sends a valid card of at most 28 KB', () => {
    for (const message of everything) {
      const body = teamsBody(message);
      const { type, attachments } = JSON.parse(body) as {
        readonly type: string;
        readonly attachments: readonly { readonly contentType: string; readonly content: object }[];
      };
      const context = new SerializationContext();
      const card = new AdaptiveCard();
      card.parse(attachments[0]?.content, context);
      const faults = Array.from(
        { length: context.eventCount },
        (_, index) => context.getEventAt(index).message,
      );

      expect(type).toBe('message');
      expect(attachments.map(({ contentType }) => contentType)).toEqual([
        'application/vnd.microsoft.card.adaptive',
      ]);
      expect([...faults, ...card.validateProperties().validationEvents]).toEqual([]);
      expect(Buffer.byteLength(body)).toBeLessThanOrEqual(28_000);
      expect(2 * body.length).toBeLessThanOrEqual(28_000);
    }
  });

  it('has no text that interprets Markdown, and only its own links', () => {
    for (const message of everything) {
      const { attachments } = JSON.parse(teamsBody(message)) as { attachments: unknown };

      expect(valuesOf('type', attachments)).not.toContain('TextBlock');
      expect(valuesOf('text', attachments).join('')).not.toMatch(UNSAFE);
      expect(JSON.stringify(attachments)).not.toContain('{{');
      expect(foreign(message, valuesOf('url', attachments))).toEqual([]);
    }
  });

  it('leaves out prompts that do not fit, and says how many', () => {
    const [message] = withText('漢'.repeat(1024)) as [Message];

    expect(teamsBody(message)).toMatch(/"and 9,99\d more"/);
  });
});

describe('email', () => {
  const transport = createTransport({ streamTransport: true, buffer: true });
  const send = async (message: Message) => {
    const mail = mailOf(message, 'evalwatch <evalwatch@example.com>', ['ops@example.com']);
    const sent = await transport.sendMail(mail);
    const [head = ''] = (sent.message as Buffer).toString().split('\r\n\r\n', 1);
    return { mail, head, envelope: sent.envelope };
  };

  it('is the same mail each time, with an id of the sender', async () => {
    const [message] = messages as [Message];
    const { mail, head } = await send(message);

    expect(mailOf(message, 'evalwatch <evalwatch@example.com>', ['ops@example.com'])).toEqual(mail);
    expect(head).toContain(`Message-ID: <${message.id}@example.com>`);
    expect(head).toContain('Date: Sun, 29 Nov 2026 14:07:12 +0000');
    expect(head).toContain('Auto-Submitted: auto-generated');
    expect(head).toContain(
      'Subject: 3 prompts of checkout-bot failed: OUTPUT_PARSE_ERROR 2, TIMEOUT 1',
    );
  });

  it('has only its own headers and recipients', async () => {
    for (const message of everything) {
      const { mail, head, envelope } = await send(message);
      const names = head
        .split(/\r\n(?![ \t])/)
        .map((line) => line.slice(0, line.indexOf(':')))
        .toSorted();

      expect(names.join(' ')).toBe(
        'Auto-Submitted Content-Type Date From MIME-Version Message-ID Subject To X-Auto-Response-Suppress',
      );
      expect(envelope).toEqual({ from: 'evalwatch@example.com', to: ['ops@example.com'] });
      expect(head.split('\r\n').every((line) => line.length <= 998)).toBe(true);
      expect(mail.subject?.length).toBeLessThanOrEqual(200);
      expect(mail.subject).not.toMatch(UNSAFE);
      expect(mail.text).not.toMatch(UNSAFE);
    }
  });

  it('has only its own markup and links', () => {
    const tags =
      /<\/?(?:html|head|title|body|div|p|span|strong|code|a)>|<html lang="en">|<!doctype html>|<meta [\w\s"=,-]+>|<(?:body|div|p) style="[^"<>]*">|<a href="([^"<>]*)"(?: style="[^"<>]*")?>/g;
    for (const message of everything) {
      const html = mailOf(message, 'evalwatch@example.com', []).html as string;
      const links = Array.from(html.matchAll(tags), ([, href]) => href).filter(
        (href) => href !== undefined,
      );

      expect(html.replaceAll(tags, '')).not.toMatch(/[<>"']/);
      expect(html).not.toMatch(UNSAFE);
      expect(
        foreign(
          message,
          links.map((href) =>
            href.replaceAll(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code))),
          ),
        ),
      ).toEqual([]);
    }
  });

  it.each([
    ['evalwatch@example.com', 'evalwatch@example.com'],
    [
      'Acme: on call; (x), y <evalwatch@example.com>',
      '"Acme: on call; (x), y" <evalwatch@example.com>',
    ],
    ['"On @ call" <evalwatch@example.com>', '"On @ call" <evalwatch@example.com>'],
  ])('from %s has that in its head', async (from, expected) => {
    const [message] = messages as [Message];
    const sent = await transport.sendMail(mailOf(message, from, [from]));
    const text = (sent.message as Buffer).toString();

    expect(text).toContain(`From: ${expected}\r\nTo: ${expected}\r\n`);
    expect(sent.envelope).toEqual({ from: 'evalwatch@example.com', to: ['evalwatch@example.com'] });
  });

  it.each([
    ['evalwatch@example.com', 'example.com'],
    ['"On @ call" <evalwatch@mail.example.com>', 'mail.example.com'],
    ['evalwatch', 'evalwatch.invalid'],
  ])('of %s has an id of %s', (from, domain) => {
    const [message] = messages as [Message];

    expect(mailOf(message, from, []).messageId).toBe(`<${message.id}@${domain}>`);
  });
});
