/** The telling fields of an error answer in JSON or Python notation. */
export interface ErrorAnswer {
  readonly message: string;
  /** False for an object that has only a message of its own. */
  readonly hasErrorKey: boolean;
  /** Type, code and status, those that the answer has. */
  readonly labels: readonly string[];
}

const MESSAGES = new Set(
  'message msg detail details title description errormessage error_message error_msg error_description faultstring exception_message errors'.split(
    ' ',
  ),
);
const ERRORS = new Set('error errors detail fault exception err'.split(' '));
const LABELS = new Map<string, 'type' | 'code' | 'status'>();
for (const label of ['type', 'code', 'status'] as const)
  for (const key of [label, `error_${label}`, `error${label}`]) LABELS.set(key, label);
LABELS.set('__type', 'type').set('reason', 'type').set('status_code', 'status');
LABELS.set('statuscode', 'status').set('http_status', 'status');
/** Keys of what a judge or another model answers. */
const ANSWERS_OF_MODELS = new Set(
  'score rating verdict label grade reasoning rationale explanation justification answer choice confidence role content text output response thought action comment feedback'.split(
    ' ',
  ),
);
/** Labels that every error has. */
const EMPTY_LABELS = new Set(['error', 'null', 'none', 'failure', 'true', 'false', '']);
const MAX_DEPTH = 32;

interface Level {
  /** The key under which the object or array stands. */
  readonly key: string;
  readonly isError: boolean;
  /** The key of the value that comes next. */
  nextKey: string;
  message?: string;
  error?: string;
  type?: string;
  code?: string;
  status?: string;
  hasErrorKey: boolean;
  hasMessageKey: boolean;
  isOfModel: boolean;
}

interface Found {
  readonly message: string;
  readonly rank: number;
  readonly isError: boolean;
  readonly hasErrorKey: boolean;
  readonly depth: number;
  type: string | undefined;
  code: string | undefined;
  status: string | undefined;
}

const TOKEN = /[^\s,:\]}{["'()]+/y;
const STRING_END = /\s{0,8}(?:[,:}\])]|$)/y;
const ESCAPE = /\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([^]))/g;

/**
 * Reads an object in JSON or Python notation that begins at `start`. Tolerates what neither allows, such as a missing
 * end. Returns where it ends, and its telling fields if it looks like the error answer of a service.
 */
export function readErrorAnswer(
  text: string,
  start: number,
): { readonly end: number; readonly answer: ErrorAnswer | undefined } {
  const levels: Level[] = [];
  let skipped = 0;
  let found: Found | undefined;
  let at = start;

  function open(): void {
    const parent = levels.at(-1);
    if (levels.length >= MAX_DEPTH) {
      skipped += 1;
      return;
    }
    const key = parent?.nextKey ?? '';
    levels.push({
      key,
      isError: ERRORS.has(key),
      nextKey: key,
      hasErrorKey: false,
      hasMessageKey: false,
      isOfModel: false,
    });
  }

  function close(): void {
    if (skipped > 0) {
      skipped -= 1;
      return;
    }
    const level = levels.pop();
    if (level === undefined) return;
    const depth = levels.length;
    const { error, type, code, status } = level;
    const message = level.message ?? error;
    const hasErrorKey = level.isError || level.hasErrorKey;
    if (message !== undefined && (hasErrorKey || !level.isOfModel)) {
      const isError = hasErrorKey || (depth === 0 && level.hasMessageKey);
      const rank = (level.isError ? 100 : 0) - depth;
      if (found === undefined || rank > found.rank) {
        // Where there is a message, the other text is a kind of error.
        const ownType = type ?? (error === message ? undefined : error);
        found = { message, rank, isError, hasErrorKey, depth, type: ownType, code, status };
        return;
      }
    }
    if (found !== undefined && depth < found.depth) {
      found.type ??= type;
      found.code ??= code;
      found.status ??= status;
    }
  }

  function take(value: string, isString: boolean): void {
    const level = levels.at(-1);
    if (level === undefined || skipped > 0) return;
    const key = level.nextKey;
    if (isString && ERRORS.has(key)) {
      level.error ??= value;
      level.hasErrorKey = true;
    }
    if (isString && MESSAGES.has(key)) {
      level.message ??= value;
      if (key.startsWith('error')) level.hasErrorKey = true;
      if (key === 'message' || key === 'msg') level.hasMessageKey = true;
    }
    const label = LABELS.get(key);
    if (label !== undefined && !EMPTY_LABELS.has(value.toLowerCase())) level[label] ??= value;
  }

  function isKey(): boolean {
    while (text[at] === ' ' || text[at] === '\n') at += 1;
    return text[at] === ':' && text[at + 1] !== ':';
  }

  while (at < text.length) {
    const character = text[at] ?? '';
    if (character === '{' || character === '[') {
      open();
      at += 1;
    } else if (character === '}' || character === ']') {
      close();
      at += 1;
      if (levels.length === 0) break;
    } else if (character === '"' || character === "'") {
      const end = endOfString(text, at);
      const value = text.slice(at + 1, end);
      at = end + 1;
      const level = levels.at(-1);
      if (isKey() && level !== undefined) {
        level.nextKey = value.toLowerCase().slice(0, 64);
        level.isOfModel ||= ANSWERS_OF_MODELS.has(level.nextKey);
      } else {
        take(value, true);
      }
    } else {
      TOKEN.lastIndex = at;
      const value = TOKEN.exec(text)?.[0] ?? '';
      at += Math.max(1, value.length);
      if (value !== '') take(value, false);
    }
  }
  const end = Math.min(at, text.length);
  // The end is missing where the message was cut.
  while (levels.length > 0) close();
  return { end, answer: answerOf(found) };
}

function answerOf(found: Found | undefined): ErrorAnswer | undefined {
  if (found === undefined) return undefined;
  const labels = [found.type, found.code, found.status].filter((label) => label !== undefined);
  if (!found.isError && labels.length === 0) return undefined;
  const { message, hasErrorKey } = found;
  return { message: unescapeText(message), hasErrorKey, labels: [...new Set(labels)] };
}

/** Returns where the string that begins at `start` ends: at its quote, or at the end of the text. */
function endOfString(text: string, start: number): number {
  const quote = text[start];
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === quote) {
      // Services quote texts without escaping their apostrophes.
      STRING_END.lastIndex = at + 1;
      if (STRING_END.test(text)) return at;
    }
  }
  return text.length;
}

/** Returns the text of a string of JSON or Python without its escapes. */
export function unescapeText(text: string): string {
  if (!text.includes('\\')) return text;
  return text.replace(ESCAPE, (_, unicode?: string, hex?: string, other?: string) => {
    const code = unicode ?? hex;
    if (code !== undefined) return String.fromCharCode(Number.parseInt(code, 16));
    return other === 'n' || other === 'r' ? '\n' : other === 't' ? ' ' : (other ?? '');
  });
}
