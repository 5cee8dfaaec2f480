import type { SendMailOptions } from 'nodemailer';
import type { Message } from '../message.ts';
import {
  type Item,
  cutTo,
  headline,
  type Line,
  MARKS,
  plain,
  sentence,
  type Wording,
  wordingOf,
} from '../wording.ts';

const MAX_SUBJECT = 200;
const COLORS: Readonly<Record<Wording['mood'], string>> = {
  bad: '#d1242f',
  good: '#1a7f37',
  neutral: '#0969da',
};

/**
 * Returns the mail for nodemailer. It is the same each time, with the same Message-ID.
 * @param from an address with or without a name
 */
export function mailOf(message: Message, from: string, to: readonly string[]): SendMailOptions {
  const wording = wordingOf(message);
  const domain = /@([\w.-]+)>?\s*$/.exec(from)?.[1] ?? 'evalwatch.invalid';
  return {
    from: mailbox(from),
    to: to.map(mailbox),
    subject: cutTo(plain(headline(wording)), MAX_SUBJECT),
    text: textOf(wording),
    html: htmlOf(wording),
    messageId: `<${message.id}@${domain}>`,
    date: new Date(message.timestamp),
    // No out-of-office replies.
    headers: { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' },
  };
}

/** Names may have any sign: nodemailer would read some of `name <address>` as the syntax of a group or of a comment. */
function mailbox(text: string): { readonly name: string; readonly address: string } {
  const [, name = '', address = text] = /^(.*)<(.*)>$/.exec(text) ?? [];
  return { name: name.trim().replace(/^"(.*)"$/, '$1'), address };
}

function textOf(wording: Wording): string {
  const urls = (line: Line) =>
    line.flatMap((part) => (typeof part === 'string' || part.url === undefined ? [] : [part.url]));
  const { items, more, link, footer } = wording;
  return [
    plain(headline(wording)),
    ...items.map(({ head, body }) =>
      [`- ${plain(head)}`, plain(body), ...urls(head)].filter(Boolean).join('\n  '),
    ),
    ...more(items.length).map(plain),
    ...(link === undefined ? [] : [`${link.words}: ${link.url}`]),
    `-- \n${plain(footer)}\n`,
  ].join('\n\n');
}

function htmlOf({ mood, title, why, items, more, link, footer }: Wording): string {
  const color = COLORS[mood];
  const item = ({ head, body }: Item) =>
    `<div style="margin:0 0 ${body.length === 0 ? 6 : 16}px">${spans(head)}${
      body.length === 0
        ? ''
        : `<div style="margin:4px 0 0;padding:2px 0 2px 10px;border-left:3px solid ${color};overflow-wrap:anywhere">${spans(body)}</div>`
    }</div>`;
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><title>${escape(plain(title))}</title></head>
<body style="margin:0;padding:16px;font:15px/1.45 system-ui,'Segoe UI',Arial,sans-serif">
<div style="max-width:680px">
<p style="margin:0 0 4px;font-size:19px;overflow-wrap:anywhere">${MARKS[mood]} ${spans(title)}</p>
<p style="margin:0 0 20px;overflow-wrap:anywhere">${spans(sentence(why))}</p>
${items.map(item).join('\n')}
${more(items.length)
  .map((line) => `<p style="margin:0 0 8px;overflow-wrap:anywhere">${spans(line)}</p>`)
  .join('\n')}
${link === undefined ? '' : `<p style="margin:20px 0"><a href="${escape(link.url)}" style="display:inline-block;padding:8px 16px;border-radius:6px;background:#0969da;color:#fff;text-decoration:none">${link.words}</a></p>`}
<p style="margin:20px 0 0;font-size:13px;color:#6e7781">${spans(footer)}</p>
</div>
</body>
</html>
`;
}

const TAGS = { plain: 'span', strong: 'strong', code: 'code' } as const;

function spans(line: Line): string {
  return line
    .map((part) => {
      if (typeof part === 'string') return escape(part);
      const tag = TAGS[part.style];
      const inner = `<${tag}>${escape(part.text)}</${tag}>`;
      return part.url === undefined ? inner : `<a href="${escape(part.url)}">${inner}</a>`;
    })
    .join('');
}

function escape(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
