import type { Message } from '../message.ts';
import {
  headline,
  type Line,
  MARKS,
  plain,
  sentence,
  type Wording,
  wordingOf,
} from '../wording.ts';

/** Maximum of Teams, in bytes. It is not documented for which encoding, so the body fits in both. */
const MAX_BODY = 28_000;

/**
 * Returns the body for a workflow of Teams: an Adaptive Card. Runs of rich text interpret no Markdown. Items that do not fit
 * are left out.
 */
export function teamsBody(message: Message): string {
  const wording = wordingOf(message);
  for (let shown = wording.items.length; ; shown--) {
    const content = JSON.stringify({
      type: 'message',
      attachments: [
        {
          contentType: 'application/vnd.microsoft.card.adaptive',
          contentUrl: null,
          content: card(wording, shown),
        },
      ],
    });
    const size = Math.max(Buffer.byteLength(content), 2 * content.length);
    if (size <= MAX_BODY || shown === 0) return content;
  }
}

function card(wording: Wording, shown: number): object {
  const { mood, title, why, items, more, link, footer } = wording;
  return {
    type: 'AdaptiveCard',
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    version: '1.4',
    fallbackText: inert(plain(headline(wording))),
    msteams: { width: 'Full' },
    body: [
      text([`${MARKS[mood]} `, ...title], { size: 'Medium', weight: 'Bolder' }),
      ...(why.length === 0 ? [] : [text(sentence(why))]),
      ...items.slice(0, shown).map(({ head, body }) => ({
        type: 'Container',
        spacing: body.length === 0 ? 'Small' : 'Medium',
        items: [
          text(head),
          ...(body.length === 0
            ? []
            : [{ type: 'Container', style: 'emphasis', spacing: 'Small', items: [text(body)] }]),
        ],
      })),
      ...more(shown).map((line, index) => ({
        ...text(line),
        spacing: index === 0 ? 'Medium' : 'Small',
      })),
      text(footer, { size: 'Small', isSubtle: true }),
    ],
    ...(link !== undefined && {
      actions: [{ type: 'Action.OpenUrl', title: link.words, url: link.url }],
    }),
  };
}

function text(line: Line, style: object = {}): object {
  const inlines = line.map((part) => {
    if (typeof part === 'string') return { type: 'TextRun', text: part, ...style };
    return {
      type: 'TextRun',
      text: inert(part.text),
      ...style,
      ...(part.style === 'strong' && { weight: 'Bolder' }),
      ...(part.style === 'code' && { fontType: 'Monospace' }),
      ...(part.url !== undefined && { selectAction: { type: 'Action.OpenUrl', url: part.url } }),
    };
  });
  return { type: 'RichTextBlock', inlines };
}

/** A space of no width keeps `{{DATE(…)}}` from being replaced by a date. */
function inert(value: string): string {
  return value.replaceAll('{{', '{\u200b{');
}
