import { hash } from 'node:crypto';
import { maskText } from './cause-rules.ts';
import type { ErrorInfo } from './failure.ts';

/** Version of the grouping, part of every cause id (docs/specification.md#causes). */
const CAUSE_VERSION = 2;
const ID_LENGTH = 16;
/** Characters that are read at the beginning and at the end of a message. */
const READ_LENGTH = 4096;
/** Characters of its explanation that are masked: more than a shape can show. */
const EXPLANATION_LENGTH = 1000;
const MAX_LENGTH = 200;
/** Messages within messages are read to this depth. */
const MAX_DEPTH = 4;
const NO_ERROR_INFO: ErrorInfo = { error_id: null, error_msg: null };

/** What failures with the same explanation have in common. */
export interface Cause {
  /** 16 hexadecimal digits, the same for the same error_id and shape wherever and whenever it is computed. */
  readonly id: string;
  /** The error_msg with `<*>` for what varies: one line of at most 200 characters. */
  readonly shape: string;
}

/**
 * Returns the cause of a failure (docs/specification.md#causes), the same for all failures without an error_info. Takes linear
 * time.
 */
export function causeOf(errorInfo: ErrorInfo | undefined): Cause {
  const { error_id, error_msg } = errorInfo ?? NO_ERROR_INFO;
  const shape = error_msg === null ? '' : shapeOf(error_msg);
  const key = JSON.stringify([CAUSE_VERSION, error_id, withoutPlurals(shape)]);
  return { id: hash('sha256', key, 'hex').slice(0, ID_LENGTH), shape };
}

/** `1 error` and `2 errors` are one message. */
function withoutPlurals(shape: string): string {
  return shape.replaceAll(/(<\*> (?:\p{Ll}+ )?\p{Ll}{3,}?)s\b/gu, '$1');
}

function shapeOf(message: string): string {
  const text = firstLine(explanation(unquote(clean(readable(message)))));
  const shape = maskText(text.slice(0, EXPLANATION_LENGTH).toWellFormed()).trim();
  if (shape.length <= MAX_LENGTH) return shape;
  return shape
    .slice(0, MAX_LENGTH)
    .replace(/<\*?$/, '')
    .toWellFormed()
    .replace(/\ufffd$/, '')
    .trimEnd();
}

function readable(message: string): string {
  if (message.length <= 2 * READ_LENGTH) return message;
  return `${message.slice(0, READ_LENGTH)}\n${message.slice(-READ_LENGTH)}`;
}

/** Sequences that colour a terminal. */
const ANSI = /[\p{Cc}--[\t\n\r]]\[[0-9;?]{0,16}[A-Za-z]/gv;
const NOT_PLAIN = /[^\t\n\u0020-\u007e]/;
/** Characters that are invisible or change the direction, and halves of pairs. */
const UNSAFE = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}\p{Cn}]/gu;

function clean(text: string): string {
  const decoded = text.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('\t', ' ');
  if (!NOT_PLAIN.test(decoded)) return decoded;
  return decoded
    .replaceAll(ANSI, '')
    .replaceAll(/\r\n?|[\u2028\u2029\u0085]/g, '\n')
    .replaceAll(UNSAFE, '')
    .replaceAll(/[^\S\n ]/g, ' ');
}

/** A message that is one quoted text as a whole is that text. */
function unquote(text: string): string {
  const content = /^\s*b?(["'])((?:[^"'\\]|\\[^]|(?!\1)["'])*)\1\s*$/.exec(text)?.[2];
  return content === undefined ? text : unescapeText(content);
}

/** A frame of Python and the lines below it. */
const PYTHON_FRAMES = /^([ |+]+)File "[^\n]*", line \d[^\n]*\n(?:\1[^\n]*(?:\n|$))*/gm;
const FRAME = /\n[ \t]*at [^\n]*[):\d](?:\n|$)/;
const CAUSES = /(?:^|\n)[ \t]*(?:Caused by:|\[cause\]:|--->) ?([^\n]*?)(?: \{)?(?=\n|$)/g;

/** Texts of several lines of which a part says what went wrong. */
const FORMS: readonly (readonly [pattern: RegExp, explanation: string])[] = [
  [/^[^]*?(?:^|\n)(panic: [^\n]*)[^]*$/, '$1'],
  [/^thread '[^\n]*panicked at [^\n']*:\n([^\n]*)[^]*$/, 'thread panicked: $1'],
  // Node shows the line that failed before the error.
  [/^[^\n]*:\d+\n[^\n]*\n *\^+\n\s*([^]*)$/, '$1'],
  [/^[^]*RPC that \w+ with:\s*status = ([\w.]+)\s*details = "([^"]*)[^]*$/, '$1: $2'],
  [
    /(validation errors? for (?:(?!validation error)[^\n])*)\n(?:\S[^\n]*\n)?\s+(\S[^\n]*?) [[(]type=[^]*$/,
    '$1: $2',
  ],
];
const MARKUP = /<(?:(?:!doctype|html|head|body|\?xml|ErrorResponse)\b|Error>\s*<)[^]*/i;
const TITLES = [
  /<(?:Message|faultstring)>([^<]{1,300})/,
  /<title[^>]{0,100}>\s*([^<]{1,300})/i,
  /<h[1-3][^>]{0,100}>\s*([^<]{1,300})/i,
];

/** Returns the part of a message that says what went wrong: its last exception, the message of an error answer, a title. */
function explanation(message: string, depth = 0): string {
  if (depth === MAX_DEPTH) return message;
  let text = message.includes('Traceback (most recent call last):\\n')
    ? unescapeText(message)
    : message;
  if (text.includes('\n')) {
    const last = text.includes('File "')
      ? Array.from(text.matchAll(PYTHON_FRAMES)).at(-1)
      : undefined;
    if (last) text = text.slice(last.index + last[0].length).replace(/^[ |+-]+/, '') || text;
    else if (FRAME.test(text))
      text =
        Array.from(text.matchAll(CAUSES)).at(-1)?.[1] ?? text.slice(0, FRAME.exec(text)?.index);
    for (const [pattern, found] of FORMS) text = text.replace(pattern, found);
  }
  const markup = MARKUP.exec(text);
  if (markup) {
    const title = TITLES.map((pattern) => pattern.exec(markup[0])?.[1]).find(
      (found) => found !== undefined,
    );
    const code = /<(?:Code|faultcode)>([^<]{1,100})/.exec(markup[0])?.[1];
    const said = code === undefined ? (title ?? 'HTML') : `${title ?? ''} (${code})`;
    return text.slice(0, markup.index) + said.replaceAll(/&#?\w{1,8};/g, ' ');
  }
  const body = /(?:\[\s{0,20})?\{\s{0,20}\\?["']/.exec(text);
  if (!body) return text;
  const before = text.slice(0, body.index).replace(/(?:\bb)?["']$/, '');
  const rest = text.slice(body.index);
  const answer = errorAnswer(body[0].includes('\\') ? unescapeText(rest) : rest, before);
  return answer === undefined
    ? text
    : (IS_ANSWER.test(before) ? '' : before) + explanation(answer, depth + 1);
}

/** A key of an object in JSON or Python notation with its text, number or word. The end may be missing. */
const PAIR =
  /(["'])(\w{1,40})\1\s{0,8}:\s{0,8}(?:"((?:[^"\\]|\\[^])*)|'((?:[^'\\]|\\[^]|'(?!\s{0,8}(?:[,:}\])]|$)))*)|([\w.+-]+))/g;
const MESSAGES =
  'message msg error_msg error_message errormessage error_description detail details faultstring description error title'.split(
    ' ',
  );
/** Objects with such a key and no error are what a judge or another model answers. */
const ANSWERS =
  'score rating verdict label grade reasoning rationale explanation answer choice confidence role content text output thought'.split(
    ' ',
  );
const IS_ANSWER = /\b(?:response|body|payload|received|got)\W*$/i;
const OF_A_MODEL = /(?:output|answer|completion|repl\w+|verdict|said)\W*$/i;
const NO_LABEL = /^(?:error|null|none|true|false|failure|)$/i;

/** Returns what an object says that looks like the error answer of a service: its message, type, code and status. */
function errorAnswer(body: string, before: string): string | undefined {
  const fields = new Map<string, string>();
  for (const [, , key = '', double, single, word] of body.matchAll(PAIR)) {
    const name = key.toLowerCase();
    const value = double ?? single ?? word ?? '';
    if (!fields.has(name) && !NO_LABEL.test(value)) fields.set(name, value);
  }
  const key = MESSAGES.find((name) => fields.has(name));
  const hasError = /["'](?:error|errors|detail|fault)["']\s{0,8}:/.test(body);
  if (key === undefined || OF_A_MODEL.test(before)) return undefined;
  if (!hasError && ANSWERS.some((name) => fields.has(name))) return undefined;
  const labels = ['type', 'code', 'status', '__type']
    .map((name) => fields.get(name) ?? '')
    .filter((label) => label !== '' && (!/\d/.test(label) || /^[45]\d\d$/.test(label)))
    .map((label) => label.replace(/^(?=\d)/, 'HTTP '));
  if (!hasError && labels.length === 0 && !/^(?:m|error)/.test(key)) return undefined;
  const message = unescapeText(fields.get(key) ?? '');
  return labels.length === 0 ? message : `${message} (${[...new Set(labels)].join(', ')})`;
}

/** Returns the text of a string of JSON or Python without its escapes. */
function unescapeText(text: string): string {
  return text.replaceAll(
    /\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([^]))/g,
    (_, unicode?: string, hex?: string, other?: string) => {
      const code = unicode ?? hex;
      if (code !== undefined) return clean(String.fromCharCode(Number.parseInt(code, 16)));
      return other === 'n' || other === 'r' ? '\n' : other === 't' ? ' ' : (other ?? '');
    },
  );
}

/** A quoted text, of which the lines belong together. */
const QUOTED = /(?<![\p{L}\p{N}])(["'])(?:(?!\1)[^]){1,400}\1/gu;

/** Returns the first line that says something. A heading such as `Error:` is continued with the next line. */
function firstLine(text: string): string {
  let found = '';
  if (!text.includes('\n')) return text;
  const lines = text.replaceAll(QUOTED, (quoted) => quoted.replaceAll('\n', ' ')).split('\n');
  for (const line of lines) {
    if (!/[\p{L}\p{N}]/u.test(line)) continue;
    found = `${found} ${line.trim()}`.trimStart();
    const isHeading = found.endsWith(':') || /^\W*(?:error|exception|warning)\W*$/i.test(found);
    if (!isHeading || found.length > EXPLANATION_LENGTH) break;
  }
  return found;
}
