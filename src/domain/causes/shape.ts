import { maskText } from './masking.ts';
import { tellingPart } from './telling-part.ts';
import { unescapeText } from './error-answer.ts';

/** Characters that are read at the beginning and at the end of a message. */
const READ_LENGTH = 4096;
const MAX_LENGTH = 200;

/** Sequences that colour a terminal. */
const ANSI = /[\p{Cc}--[\t\n\r]]\[[0-9;?]{0,16}[A-Za-z]/gv;
const NOT_PLAIN = /[^\t\n\r\u0020-\u007e]/;
/** Characters that end a line, are invisible or change the direction, and halves of pairs. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}\p{Cn}]/gu;
const QUOTED = /^\s*b?(["'])([^]*)\1\s*$/;

/** Returns what the author of an error message wrote, without what varies: at most 200 characters on one line. */
export function shapeOf(message: string): string {
  const text = unquote(clean(readable(message)));
  const shape = maskText(tellingPart(text));
  // Escapes that were read meanwhile may stand for such characters.
  return cut(shape.replaceAll(UNSAFE, ''));
}

function readable(message: string): string {
  if (message.length <= 2 * READ_LENGTH) return message;
  return `${message.slice(0, READ_LENGTH)}\n${message.slice(-READ_LENGTH)}`;
}

function clean(text: string): string {
  const decoded = text.replaceAll('&quot;', '"').replaceAll('&#39;', "'");
  if (!NOT_PLAIN.test(decoded)) return decoded;
  return decoded
    .replaceAll(ANSI, '')
    .replaceAll(/\r\n?|[\u2028\u2029\u0085]/g, '\n')
    .replaceAll(UNSAFE, (character) => (character === '\n' ? '\n' : character === '\t' ? ' ' : ''))
    .replaceAll(/[^\S\n ]/g, ' ');
}

/** A message that is one quoted text as a whole is that text. */
function unquote(text: string): string {
  const [, quote, content] = QUOTED.exec(text) ?? [];
  if (quote === undefined || content === undefined) return text;
  return content.replaceAll('\\\\', '').replaceAll(`\\${quote}`, '').includes(quote)
    ? text
    : unescapeText(content);
}

function cut(shape: string): string {
  if (shape.length <= MAX_LENGTH) return shape;
  const kept = shape.slice(0, MAX_LENGTH);
  return kept
    .replace(/<\*?$/, '')
    .toWellFormed()
    .replace(/\ufffd$/, '')
    .trimEnd();
}
