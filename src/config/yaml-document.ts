import {
  type Alias,
  type Document,
  LineCounter,
  type Node,
  type Pair,
  type YAMLError,
  type YAMLMap,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  parseDocument,
  visit,
} from 'yaml';

/** From 1, as editors count. */
interface Position {
  readonly line: number;
  readonly column: number;
}

export interface YamlFault extends Position {
  readonly message: string;
}

export type Path = readonly PropertyKey[];

/** A YAML text, read. */
export interface YamlDocument {
  /** As plain JavaScript; `null` for an empty text. */
  readonly value: unknown;
  /** Mistakes that leave the rest readable: keys given twice, unknown tags. */
  readonly faults: readonly YamlFault[];
  /** Where the value at this path stands; if there is none, the nearest one around it. */
  locate(path: Path): Position;
  /** Where the key of the last step of this path stands. */
  locateKey(path: Path): Position;
}

/** A thousand projects may share a schedule by an alias; a few bytes may not grow into gigabytes. */
const MAX_ALIASES = 10_000;

/**
 * Reads one YAML 1.2 document (core schema, no merge keys). Of a text that is not YAML the first mistake is all there
 * is. No message repeats any of the text but keys.
 */
export function readYaml(text: string): YamlDocument | { readonly syntaxFault: YamlFault } {
  const lines = new LineCounter();
  try {
    const document = parseDocument(text, {
      lineCounter: lines,
      prettyErrors: false,
      // They are found below, in less than quadratic time and along with everything else.
      uniqueKeys: false,
      // Whatever a %YAML directive says.
      schema: 'core',
      merge: false,
      resolveKnownTags: false,
      logLevel: 'error',
    });
    const error = document.errors.toSorted((one, other) => one.pos[0] - other.pos[0])[0];
    if (error !== undefined) {
      return { syntaxFault: faultAt(error.pos[0], lines, describeError(error, text)) };
    }
    const { targets, dangling } = resolveAliases(document);
    if (dangling !== undefined) {
      const message = `not valid YAML: ${QUOTE_STARS}`;
      return { syntaxFault: faultAt(startOf(dangling) ?? 0, lines, message) };
    }
    // Resolving them takes quadratic time.
    if (targets.size > MAX_ALIASES) return { syntaxFault: TOO_MUCH };
    const locate = locator(document, targets);
    return {
      value: document.toJS({ maxAliasCount: MAX_ALIASES }) as unknown,
      faults: [...findDuplicateKeys(document, lines), ...findUnknownTags(document, lines)],
      locate: (path) => positionOf(locate(path).value, lines),
      locateKey: (path) => positionOf(locate(path).key, lines),
    };
  } catch {
    // Too deep for the stack, aliases in a circle, or aliases of aliases of aliases.
    return { syntaxFault: TOO_MUCH };
  }
}

const TOO_MUCH: YamlFault = {
  line: 1,
  column: 1,
  message: 'not usable YAML: it is nested too deeply, or has too many aliases (*)',
};

const QUOTE_STARS =
  'a value that starts with * must be in quotes, such as "*/30 * * * * *", and an alias needs its anchor (&) before it';

const SYNTAX: Readonly<Partial<Record<YAMLError['code'], string>>> = {
  BAD_ALIAS: QUOTE_STARS,
  BAD_DQ_ESCAPE: 'an unknown escape in double quotes; single quotes keep a backslash as it is',
  BAD_INDENT: 'this is not indented like its neighbours, or a bracket is not closed',
  BAD_SCALAR_START: 'a value that starts with %, @ or ` must be in quotes',
  BLOCK_AS_IMPLICIT_KEY: 'a colon or an indentation where none is expected',
  MISSING_CHAR: 'a closing quote or bracket, a comma, or a colon and the space after it is missing',
  MULTILINE_IMPLICIT_KEY: 'a colon after a key is missing, or an indentation is wrong',
  RESOURCE_EXHAUSTION: 'it is nested too deeply',
  TAB_AS_INDENT: 'tabs cannot indent, use spaces',
};

function describeError(error: YAMLError, text: string): string {
  if (error.code === 'MULTIPLE_DOCS') return 'a second document starts here, only one is read';
  const lineStart = text.lastIndexOf('\n', error.pos[0] - 1) + 1;
  // The commonest slip by far: a cron expression without its quotes.
  if (/^[^"'#\n]*[:-] +\*/.test(text.slice(lineStart))) return `not valid YAML: ${QUOTE_STARS}`;
  return `not valid YAML: ${SYNTAX[error.code] ?? 'check the indentation, quotes and colons here'}`;
}

/** What each alias stands for; or the first one whose anchor does not stand before it. */
function resolveAliases(document: Document): {
  readonly targets: ReadonlyMap<unknown, Node>;
  readonly dangling: Alias | undefined;
} {
  const anchors = new Map<string, Node>();
  const targets = new Map<unknown, Node>();
  let dangling: Alias | undefined;
  visit(document, {
    Node: (_key, node) => {
      if (!isAlias(node)) {
        if (node.anchor !== undefined) anchors.set(node.anchor, node);
        return undefined;
      }
      const target = anchors.get(node.source);
      if (target !== undefined) targets.set(node, target);
      else dangling = node;
      return target === undefined ? visit.BREAK : undefined;
    },
  });
  return { targets, dangling };
}

function findDuplicateKeys(document: Document, lines: LineCounter): readonly YamlFault[] {
  const faults: YamlFault[] = [];
  visit(document, {
    Map: (_key, map) => {
      const first = new Map<string, number>();
      for (const { key } of map.items) {
        const name = keyName(key);
        const offset = startOf(key);
        if (name === undefined || offset === undefined) continue;
        const before = first.get(name);
        if (before === undefined) {
          first.set(name, offset);
        } else {
          const { line } = positionOf(before, lines);
          faults.push(faultAt(offset, lines, `this key is given twice, first on line ${line}`));
        }
      }
    },
  });
  return faults;
}

function findUnknownTags(document: Document, lines: LineCounter): readonly YamlFault[] {
  return document.warnings
    .filter((warning) => warning.code === 'TAG_RESOLVE_FAILED')
    .map((warning) => faultAt(warning.pos[0], lines, 'this tag (!) means nothing here'));
}

/** Finds the key and the value at a path, by offset. */
function locator(document: Document, targets: ReadonlyMap<unknown, Node>) {
  const indexes = new WeakMap<YAMLMap, ReadonlyMap<string | undefined, Pair>>();
  const pairOf = (map: YAMLMap, key: PropertyKey): Pair | undefined => {
    const index = indexes.get(map) ?? new Map(map.items.map((pair) => [keyName(pair.key), pair]));
    indexes.set(map, index);
    return index.get(String(key));
  };
  return (path: Path): { readonly key: number; readonly value: number } => {
    let node: unknown = document.contents;
    let key = startOf(node) ?? 0;
    let value = key;
    for (const step of path) {
      node = targets.get(node) ?? node;
      if (isSeq(node)) {
        node = node.items[Number(step)];
        key = startOf(node) ?? key;
        value = key;
        continue;
      }
      const pair = isMap(node) ? pairOf(node, step) : undefined;
      if (pair === undefined) break;
      node = pair.value;
      key = startOf(pair.key) ?? key;
      value = startOf(node) ?? key;
    }
    return { key, value };
  };
}

/** A key as JavaScript has it; undefined for one that is a list or a mapping. */
function keyName(key: unknown): string | undefined {
  return isScalar<string | number | boolean | null>(key) ? String(key.value ?? '') : undefined;
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined;
}

function positionOf(offset: number, lines: LineCounter): Position {
  const { line, col } = lines.linePos(offset);
  // An empty text has no line that could be found.
  return { line: Math.max(line, 1), column: Math.max(col, 1) };
}

function faultAt(offset: number, lines: LineCounter, message: string): YamlFault {
  return { ...positionOf(offset, lines), message };
}
