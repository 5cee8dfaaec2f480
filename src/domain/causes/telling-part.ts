/** Line of a stack frame of Python; JavaScript, Java and C#; or PHP. */
const FRAME = /^[ \t]*(?:File ".*", line \d|at [^\s].*[):\d]|from .*:\d+:in |#\d+ )/;
const HAS_FRAMES = /\n[ |+\t]{0,16}(?:File "|at |from |#\d)/;
const PYTHON_FRAME = /^\s*File ".*", line \d/;
/** Mark under a piece of the source that failed. */
const CARETS = /^\s*[~^]+\s*$/;
/** Frame of an exception group of Python. */
const HAS_GROUP = /^ *[|+]/m;
const GROUP = /^ *[|+][ +-]? ?/;
const CAUSE = /^\s*(?:Caused by:|\[cause\]:|---> ?)\s*(\S.*)$/;

/**
 * Returns the part of a message that says what went wrong, and what follows it: of a traceback the last exception, of a
 * panic its message, otherwise everything.
 */
export function tellingPart(message: string): string {
  const text = unfoldTraceback(message);
  if (!text.includes('\n')) return text;
  if (text.includes('panic')) {
    const panic = panicOf(text.split('\n'));
    if (panic !== undefined) return panic;
  }
  // Most texts of several lines have no frames, and those that have some end with them.
  if (!HAS_FRAMES.test(text)) return text;
  const split = text.split('\n');
  const lines = HAS_GROUP.test(text) ? split.map((line) => line.replace(GROUP, '')) : split;
  const lastFrame = lines.findLastIndex((line) => FRAME.test(line));
  if (lastFrame === -1) return text;
  return PYTHON_FRAME.test(lines[lastFrame] ?? '')
    ? afterFrames(lines, lastFrame, text)
    : beforeFrames(lines, text);
}

/** A traceback may come on one line, with its ends of lines escaped. */
function unfoldTraceback(text: string): string {
  return text.includes('Traceback (most recent call last):\\n')
    ? text.replaceAll('\\n', '\n').replaceAll('\\"', '"')
    : text;
}

/** Python writes the exception behind its frames, less indented than they are. */
function afterFrames(lines: readonly string[], lastFrame: number, text: string): string {
  const depth = indentOf(lines[lastFrame] ?? '');
  for (let index = lastFrame + 1; index < lines.length; index += 1) {
    const line = lines[index] ?? '';
    if (/\p{L}/u.test(line) && indentOf(line) < depth) return lines.slice(index).join('\n');
  }
  return text;
}

/** Others write it before them: the last cause, or what follows the piece of source that Node shows. */
function beforeFrames(lines: readonly string[], text: string): string {
  for (let index = lines.length - 1; index >= 0; index -= 1) {
    const cause = CAUSE.exec(lines[index] ?? '')?.[1];
    if (cause !== undefined) return [cause, ...lines.slice(index + 1)].join('\n');
  }
  const first = lines.findIndex((line) => FRAME.test(line));
  const carets = lines.slice(0, first).findIndex((line) => CARETS.test(line));
  return carets === -1 ? text : lines.slice(carets + 1).join('\n');
}

/** Panics of Rust and Go. */
function panicOf(lines: readonly string[]): string | undefined {
  for (const [index, line] of lines.entries()) {
    if (line.startsWith('panic: ')) return lines.slice(index).join('\n');
    if (/^thread '.*' .*panicked at [^']*:$/.test(line)) {
      return `thread panicked: ${lines.slice(index + 1).join('\n')}`;
    }
  }
  return undefined;
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

const TITLE = /<title[^>]{0,100}>\s*([^<]{1,300})/i;
const HEADING = /<h[1-3][^>]{0,100}>\s*([^<]{1,300})/i;
const XML_CODE = /<(?:Code|faultcode)>([^<]{1,100})/;
const XML_MESSAGE = /<(?:Message|faultstring)>([^<]{1,300})/;

/** Returns what a page of HTML, or an error in XML, says: its title, or its code and message. */
export function markupTitle(markup: string): string {
  const code = XML_CODE.exec(markup)?.[1];
  const message = XML_MESSAGE.exec(markup)?.[1];
  if (message !== undefined && code !== undefined) return `${message} [${code}]`;
  if (message !== undefined || code !== undefined) return message ?? code ?? '';
  const title = TITLE.exec(markup)?.[1] ?? HEADING.exec(markup)?.[1] ?? 'HTML';
  return title.replaceAll(/&#?\w{1,8};/g, ' ');
}
