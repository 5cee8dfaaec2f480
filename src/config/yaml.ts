import { setImmediate } from 'node:timers/promises';
import {
  Composer,
  CST,
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  Parser,
  type YAMLError,
  type YAMLMap,
} from 'yaml';
import { readTextFile } from '../files/read-file.ts';
import { ConfigError, type ConfigFault } from './config.ts';

export type Path = readonly PropertyKey[];

/** A mapping of a file before it is checked. Has no prototype, so that names such as `__proto__` are ordinary keys. */
export type Tree = Readonly<Record<string, unknown>>;

/** Where something is. Line and column count from 1. */
export type Position = Pick<ConfigFault, 'file' | 'line' | 'column'>;

/** A YAML file that was read. */
export interface YamlFile<Top = Tree> {
  readonly file: string;
  readonly text: string;
  /** What the top level is. */
  readonly tree: Top;
  /** Errors that do not prevent reading the rest: duplicate keys, unknown tags. */
  readonly faults: readonly ConfigFault[];
  /** Returns the position of the value at this path; without one, the position of the nearest value around it. */
  locate(path: Path): Position;
  /** Returns the position of the key that is the last step of this path. */
  locateKey(path: Path): Position;
}

/** What the top level of a file must be. */
export interface Shape<Top> {
  /** Returns undefined if the value is something else. */
  readonly read: (value: unknown) => Top | undefined;
  /** A sentence about a file that is something else. */
  readonly fault: string;
}

/** Maximum number of the lexer's tokens. 100,000 projects that have nothing but an id have a million. */
const MAX_TOKENS = 1_200_000;
/** Maximum nesting of collections. A configuration needs four levels. */
const MAX_DEPTH = 100;
/** Maximum number of values once aliases are expanded: each wrong one is a fault, and few bytes could have gigabytes of them. */
const MAX_VALUES = 1_000_000;
/** Tokens between pauses, so that a reload of many projects does not hold up polls and beats. */
const TOKENS_PER_TURN = 1000;

export function isMapping(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const EMPTY: Tree = Object.freeze(Object.create(null));

/** A mapping; also an empty file. */
const MAPPING: Shape<Tree> = {
  read: (value) => (value === null ? EMPTY : isMapping(value) ? value : undefined),
  fault: 'the file must be a mapping (key: value)',
};

/** Returns the mapping at a key; an empty one if the value is no mapping. */
export function mappingAt(tree: Tree, key: string): Tree {
  const value = tree[key];
  return isMapping(value) ? value : EMPTY;
}

/**
 * Reads a file with one YAML 1.2 document (core schema, no merge keys). Messages contain nothing of the text except keys.
 * @param advice end of the message when there is no file
 * @throws {ConfigError} with the first error only, if it cannot be read, is not YAML or is {@link MAPPING no mapping}
 */
export async function readYamlFile(
  file: string,
  maxBytes: number,
  advice: string,
): Promise<YamlFile> {
  return await readYamlOf(MAPPING, file, maxBytes, advice);
}

/** Does the same for a file whose top level has another shape. */
export async function readYamlOf<Top>(
  shape: Shape<Top>,
  file: string,
  maxBytes: number,
  advice: string,
): Promise<YamlFile<Top>> {
  const { text, fault } = readTextFile(file, maxBytes);
  if (fault !== undefined) {
    const message = fault === 'there is no such file' ? fault + advice : fault;
    throw new ConfigError('unreadable', [{ file, line: 1, column: 1, message }]);
  }
  const lines = new LineCounter();
  const at = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    // For an empty text the counter returns line 0.
    return { file, line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const toFault = ({ offset, message }: OffsetFault) => ({ ...at(offset), message });
  try {
    const document = await parse(text, lines);
    await setImmediate();
    const { value, keyFaults } = readValues(document, (offset) => at(offset).line);
    const locate = (path: Path) => find(document, path);
    const tree = shape.read(value);
    if (tree === undefined) throw new FatalFault(locate([]).value, shape.fault);
    return {
      file,
      text,
      tree,
      faults: [...keyFaults, ...findTags(document)].map(toFault),
      locate: (path) => at(locate(path).value),
      locateKey: (path) => at(locate(path).key),
    };
  } catch (error) {
    if (error instanceof FatalFault) throw new ConfigError('invalid', [toFault(error)]);
    throw error;
  }
}

/** An error and its offset in the text. */
interface OffsetFault {
  readonly offset: number;
  readonly message: string;
}

/** An error that prevents reading the rest. */
class FatalFault extends Error {
  readonly offset: number;

  constructor(offset: number, message: string) {
    super(message);
    this.offset = offset;
  }
}

/** Parses a text into nodes. @throws {FatalFault} */
async function parse(text: string, lines: LineCounter): Promise<Document> {
  const parser = new Parser(lines.addNewLine);
  const tokens: CST.Token[] = [];
  let count = 0;
  lines.addNewLine(0);
  for (const lexeme of new Lexer().lex(text)) {
    count += 1;
    if (count > MAX_TOKENS) {
      throw new FatalFault(0, `not usable YAML: more than ${MAX_TOKENS} tokens`);
    }
    // The parser's stack has the open collections, the document, and perhaps a scalar.
    const depth = parser.stack.length - (CST.isCollection(parser.stack.at(-1)) ? 1 : 2);
    if (depth > MAX_DEPTH) {
      const message = `not usable YAML: more than ${MAX_DEPTH} levels of nesting`;
      throw new FatalFault(parser.offset, message);
    }
    tokens.push(...parser.next(lexeme));
    if (count % TOKENS_PER_TURN === 0) await setImmediate();
  }
  tokens.push(...parser.end());
  const [document, second] = compose(tokens, text.length);
  if (document === undefined) throw new Error('the YAML composer returned no document');
  const [error] = document.errors.toSorted((one, other) => one.pos[0] - other.pos[0]);
  if (error !== undefined) throw new FatalFault(error.pos[0], describe(error, text));
  if (second === undefined) return document;
  const message = 'a second document starts here, but the file must have only one';
  throw new FatalFault(second.range[0], message);
}

/** Returns the first two documents. Runs without stack traces: a text may have a million errors, and their stacks are not used. */
function compose(tokens: readonly CST.Token[], length: number): readonly Document.Parsed[] {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    const composer = new Composer({
      prettyErrors: false,
      // `readValues` finds duplicate keys; the parser's own check takes quadratic time.
      uniqueKeys: false,
      // A %YAML directive must not change the schema.
      schema: 'core',
      merge: false,
      resolveKnownTags: false,
      logLevel: 'error',
    });
    return composer.compose(tokens, true, length).take(2).toArray();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** Message for an alias without an anchor: nearly always an unquoted cron expression. */
const QUOTE_STARS =
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

function describe({ code, pos: [offset] }: YAMLError, text: string): string {
  const lineStart = text.lastIndexOf('\n', offset - 1) + 1;
  const lineEnd = text.indexOf('\n', lineStart);
  const line = text.slice(lineStart, lineEnd === -1 ? text.length : lineEnd);
  // By far the most common error: a cron expression without quotes.
  const isUnquoted = /^[^"'#]*?[:-] +\*/.test(line);
  const hint = isUnquoted
    ? QUOTE_STARS
    : (SYNTAX[code] ?? 'check the indentation, quotes and colons here');
  return `not valid YAML: ${hint}`;
}

function findTags({ warnings }: Document): readonly OffsetFault[] {
  const message = 'unknown tag (!): remove it, or put a value that starts with ! in quotes';
  return warnings
    .filter((warning) => warning.code === 'TAG_RESOLVE_FAILED')
    .map((warning) => ({ offset: warning.pos[0], message }));
}

/**
 * Reads the values of a document. An alias is the same value as its anchor, so that aliases need no memory. The library's `toJS`
 * does not know the positions of duplicate keys.
 * @throws {FatalFault}
 */
function readValues(document: Document, lineOf: (offset: number) => number) {
  /** What aliases may refer to; without a count of its values until it is complete. */
  const anchors = new Map<string, { readonly node: unknown; value?: unknown; count?: number }>();
  const keyFaults: OffsetFault[] = [];
  let count = 0;

  function valueOf(node: unknown): unknown {
    if (isAlias(node)) {
      const anchor = anchors.get(node.source);
      if (anchor === undefined) {
        throw new FatalFault(startOf(node), `not valid YAML: ${QUOTE_STARS}`);
      }
      if (anchor.count === undefined) {
        const message = 'not usable YAML: this alias (*) refers to a value that contains it';
        throw new FatalFault(startOf(node), message);
      }
      add(node, anchor.count);
      return anchor.value;
    }
    const before = count;
    add(node, 1);
    if (!isNode(node) || node.anchor === undefined) return contentOf(node);
    const anchor: { readonly node: unknown; value?: unknown; count?: number } = { node };
    anchors.set(node.anchor, anchor);
    anchor.value = contentOf(node);
    anchor.count = count - before;
    return anchor.value;
  }

  function contentOf(node: unknown): unknown {
    if (isMap(node)) return mappingOf(node);
    if (isSeq(node)) return node.items.map(valueOf);
    return isScalar(node) ? node.value : null;
  }

  function mappingOf({ items }: YAMLMap): Tree {
    const mapping: Record<string, unknown> = Object.create(null);
    const offsets = new Map<string, number>();
    for (const { key, value } of items) {
      valueOf(key);
      const name = keyName(isAlias(key) ? anchors.get(key.source)?.node : key);
      const offset = startOf(key);
      const before = name === undefined ? undefined : offsets.get(name);
      if (name === undefined) {
        const message = 'a key must be a text, not a list or a mapping';
        keyFaults.push({ offset, message });
      } else if (before === undefined) offsets.set(name, offset);
      else {
        const shown = isSafeKey(name) ? ` ${JSON.stringify(name)}` : '';
        const message = `duplicate key${shown}, first given on line ${lineOf(before)}`;
        keyFaults.push({ offset, message });
      }
      const made = valueOf(value);
      if (name !== undefined) mapping[name] = made;
    }
    return mapping;
  }

  function add(node: unknown, more: number): void {
    count += more;
    if (count <= MAX_VALUES) return;
    const message = `not usable YAML: more than ${MAX_VALUES} values once aliases are expanded`;
    throw new FatalFault(startOf(node), message);
  }

  return { value: valueOf(document.contents), keyFaults };
}

/** Returns a key as it is written; undefined for a list or a mapping. */
function keyName(node: unknown): string | undefined {
  if (!isScalar(node)) return undefined;
  // The source text, because 0123 and 123 are different names.
  return typeof node.value === 'string' ? node.value : (node.source ?? '');
}

/** Whether a YAML key can be shown: without a space after its colon, the value (even an API key) becomes part of the key. */
export function isSafeKey(key: string): boolean {
  return /^\w[\w-]{0,40}$/.test(key);
}

function resolve(node: unknown, document: Document): unknown {
  return isAlias(node) ? node.resolve(document) : node;
}

/** Finds the offsets of the key and the value at a path. */
function find(document: Document, path: Path): { readonly key: number; readonly value: number } {
  let node: unknown = document.contents;
  let key = startOf(node);
  let value = key;
  for (const step of path) {
    node = resolve(node, document);
    if (isSeq(node)) {
      node = node.items[Number(step)];
      key = startOf(node, key);
      value = key;
      continue;
    }
    const pair = isMap(node)
      ? node.items.findLast((item) => keyName(resolve(item.key, document)) === String(step))
      : undefined;
    if (pair === undefined) break;
    node = pair.value;
    key = startOf(pair.key, key);
    value = startOf(node, key);
  }
  return { key, value };
}

function startOf(node: unknown, otherwise = 0): number {
  return (isNode(node) ? node.range?.[0] : undefined) ?? otherwise;
}
