import { setImmediate } from 'node:timers/promises';
import {
  Composer,
  CST,
  type Document,
  Lexer,
  type LineCounter,
  Parser,
  type YAMLError,
} from 'yaml';

/** An error and its offset in the text. Its message contains nothing of the text except keys. */
export interface OffsetFault {
  readonly offset: number;
  readonly message: string;
}

export type ParsedYaml =
  | { readonly document: Document; readonly fault?: never }
  | { readonly fault: OffsetFault; readonly document?: never };

/** A project in block style has about 25 tokens. Each token costs the parser a kilobyte and 10 µs. */
const MAX_TOKENS = 1_500_000;
/** Maximum nesting of collections. A configuration needs four levels. */
const MAX_DEPTH = 100;
/** Tokens that are read in one turn of the event loop, so that a reload of many projects does not hold up polls and beats. */
const TOKENS_PER_TURN = 1000;

/** Parses one YAML 1.2 document (core schema, no merge keys) into nodes. Aliases are not resolved. */
export async function parseYaml(
  text: string,
  lines: LineCounter,
  maxTokens = MAX_TOKENS,
): Promise<ParsedYaml> {
  const { tokens, excess } = await readTokens(text, lines, maxTokens);
  if (excess !== undefined) return { fault: excess };
  const composer = new Composer({
    prettyErrors: false,
    // yaml-values.ts finds duplicate keys; the parser's own check takes quadratic time.
    uniqueKeys: false,
    // A %YAML directive must not change the schema.
    schema: 'core',
    merge: false,
    resolveKnownTags: false,
    logLevel: 'error',
  });
  const [document, second] = withoutStacks(() => composer.compose(tokens, true, text.length));
  if (document === undefined) throw new Error('the YAML composer returned no document');
  const [first] = document.errors.toSorted((one, other) => one.pos[0] - other.pos[0]);
  if (first !== undefined) return { fault: toOffsetFault(first, text) };
  if (second === undefined) return { document };
  const message = 'a second document starts here, but the file must have only one';
  return { fault: { offset: second.range[0], message } };
}

/** Returns the first two items of `make`, run without stack traces: a text may have a million errors, and their stacks are not used. */
function withoutStacks<Item>(make: () => Iterable<Item>): readonly Item[] {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    const [first, second] = make();
    return [first, second].filter((item) => item !== undefined);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

interface Tokens {
  /** A token of the top level has all others in it. */
  readonly tokens: readonly CST.Token[];
  /** Why the text has more tokens or levels than any configuration needs. */
  readonly excess?: OffsetFault;
}

/** Reads the tokens of a text, with pauses for other work. */
async function readTokens(text: string, lines: LineCounter, maxTokens: number): Promise<Tokens> {
  const parser = new Parser(lines.addNewLine);
  const tokens: CST.Token[] = [];
  let count = 0;
  lines.addNewLine(0);
  for (const lexeme of new Lexer().lex(text)) {
    count += 1;
    if (count > maxTokens) return { tokens, excess: excessOf(parser, `${maxTokens} tokens`) };
    if (depthOf(parser) > MAX_DEPTH) {
      return { tokens, excess: excessOf(parser, `${MAX_DEPTH} levels of nesting`) };
    }
    tokens.push(...parser.next(lexeme));
    if (count % TOKENS_PER_TURN === 0) await setImmediate();
  }
  tokens.push(...parser.end());
  return { tokens };
}

function excessOf({ offset }: Parser, limit: string): OffsetFault {
  return { offset, message: `not usable YAML: more than ${limit}` };
}

/** Number of open collections: the parser's stack without the document and without a scalar on top. */
function depthOf({ stack }: Parser): number {
  return stack.length - (CST.isCollection(stack.at(-1)) ? 1 : 2);
}

/** Message for an alias without an anchor: nearly always an unquoted cron expression. */
export const QUOTE_STARS =
  'put a value that starts with * in quotes, such as "*/30 * * * * *"; an alias (*name) needs an anchor (&name) before it';

const SYNTAX: Readonly<Partial<Record<YAMLError['code'], string>>> = {
  BAD_ALIAS: QUOTE_STARS,
  BAD_DQ_ESCAPE: 'unknown escape in double quotes; single quotes keep backslashes as they are',
  BAD_INDENT: 'wrong indentation, or a bracket that is not closed',
  BAD_SCALAR_START: 'put a value that starts with %, @ or ` in quotes',
  BLOCK_AS_IMPLICIT_KEY: 'unexpected colon or indentation',
  MISSING_CHAR: 'missing quote, bracket or comma, or no space after a colon',
  MULTILINE_IMPLICIT_KEY: 'missing colon after a key, or wrong indentation',
  TAB_AS_INDENT: 'indent with spaces, not with tabs',
};

function toOffsetFault({ code, pos: [offset] }: YAMLError, text: string): OffsetFault {
  const lineStart = text.lastIndexOf('\n', offset - 1) + 1;
  const lineEnd = text.indexOf('\n', lineStart);
  const line = text.slice(lineStart, lineEnd === -1 ? text.length : lineEnd);
  // By far the most common error: a cron expression without quotes.
  const isUnquoted = /^[^"'#]*?[:-] +\*/.test(line);
  const hint = isUnquoted
    ? QUOTE_STARS
    : (SYNTAX[code] ?? 'check the indentation, quotes and colons here');
  return { offset, message: `not valid YAML: ${hint}` };
}
