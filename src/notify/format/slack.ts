import type { Message } from '../message.ts';
import {
  type Wording,
  cutTo,
  headline,
  type Line,
  MARKS,
  plain,
  sentence,
  wordingOf,
} from '../wording.ts';

/** Slack's maximum for a header. */
const MAX_HEADER = 150;
/** Discord's maximum for a message; the others take more. */
const MAX_TEXT = 2000;
/** What the headline may take of that, for the items and the link. */
const MAX_HEADLINE = 700;

/**
 * Returns the body for Slack. Slack shows the `blocks`, whose rich text interprets nothing. Mattermost, Rocket.Chat and Discord
 * show the `text`, as do notifications: texts from outside are code in it, which none of them interprets.
 */
export function slackBody(message: Message): string {
  const wording = wordingOf(message);
  const { mood, title, why, items, more, link, footer } = wording;
  const blocks = [
    {
      type: 'header',
      text: plainText(cutTo(`${MARKS[mood]} ${plain(title)}`, MAX_HEADER)),
    },
    ...(why.length === 0 ? [] : [richText(section(sentence(why)))]),
    ...items.map(({ head, body }) =>
      richText(section(head), ...(body.length === 0 ? [] : [section(body, 'rich_text_quote')])),
    ),
    ...more(items.length).map((line) => richText(section(line))),
    ...(link === undefined
      ? []
      : [richText(section([{ text: link.words, style: 'strong', url: link.url }]))]),
    { type: 'context', elements: [plainText(plain(footer))] },
  ];
  return JSON.stringify({
    text: textOf(wording),
    blocks,
    unfurl_links: false,
    unfurl_media: false,
  });
}

function plainText(text: string): object {
  return { type: 'plain_text', text, emoji: false };
}

function richText(...elements: readonly object[]): object {
  return { type: 'rich_text', elements };
}

function section(line: Line, type = 'rich_text_section'): object {
  const elements = line.map((part) => {
    if (typeof part === 'string') return { type: 'text', text: part };
    const { text, style, url } = part;
    return {
      ...(url === undefined ? { type: 'text', text } : { type: 'link', url, text }),
      ...(style === 'strong' && { style: { bold: true } }),
      ...(style === 'code' && { style: { code: true } }),
    };
  });
  return { type, elements };
}

function textOf(wording: Wording): string {
  const first = markup(headline(wording));
  const lines = [
    `${MARKS[wording.mood]} ${first.length > MAX_HEADLINE ? markup(wording.title) : first}`,
  ];
  const last = wording.link === undefined ? '' : `\n<${escape(wording.link.url)}>`;
  const others = [
    ...wording.items.map(({ head, body }) => [
      '• ',
      ...head,
      ...(body.length === 0 ? [] : [': ', ...body]),
    ]),
    ...wording.more(wording.items.length),
  ];
  let left = MAX_TEXT - lines.join('').length - last.length - 2;
  for (const line of others.map(markup)) {
    left -= line.length + 1;
    if (left < 0) return `${lines.join('\n')}\n…${last}`;
    lines.push(line);
  }
  return lines.join('\n') + last;
}

/** A space of no width keeps an @ from being a mention. */
function markup(line: Line): string {
  return line
    .map((part) =>
      typeof part === 'string'
        ? part
        : `\`${escape(part.text.replaceAll('`', "'").replaceAll('@', '@\u200b'))}\``,
    )
    .join('');
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
