import { setImmediate } from 'node:timers/promises';
import { type Document, LineCounter, type Node, type Pair, type YAMLMap, isMap, isSeq } from 'yaml';
import { parseYaml, type OffsetFault } from './yaml-parser.ts';
import { isSafeKey } from '../redaction.ts';
import { keyName, type InvalidKey, readValues, startOf } from './yaml-values.ts';

/** Line and column count from 1. */
interface Position {
  readonly line: number;
  readonly column: number;
}

export interface YamlFault extends Position {
  readonly message: string;
}

export type Path = readonly PropertyKey[];

/** A parsed YAML text. */
export interface YamlDocument {
  /** The value as plain JavaScript, in which mappings have no prototype; `null` for an empty text. */
  readonly value: unknown;
  /** Errors that do not prevent reading the rest: duplicate keys, unknown tags. */
  readonly faults: readonly YamlFault[];
  /** Returns the position of the value at this path; without one, the position of the nearest value around it. */
  locate(path: Path): Position;
  /** Returns the position of the key that is the last step of this path. */
  locateKey(path: Path): Position;
}

/**
 * Reads one YAML 1.2 document (core schema, no merge keys). For a text that is not valid YAML or
 * exceeds a limit, returns only the first error. Messages contain nothing of the text except keys.
 */
export async function readYaml(
  text: string,
): Promise<YamlDocument | { readonly syntaxFault: YamlFault }> {
  const lines = new LineCounter();
  const { document, fault } = await parseYaml(text, lines);
  if (fault !== undefined) return { syntaxFault: toFault(fault, lines) };
  await setImmediate();
  const values = readValues(document);
  if (values.fault !== undefined) return { syntaxFault: toFault(values.fault, lines) };
  const { value, targets, invalidKeys } = values;
  const locate = locator(document, targets);
  return {
    value,
    faults: [...invalidKeys.map((key) => describeKey(key, lines)), ...findTags(document, lines)],
    locate: (path) => positionOf(locate(path).value, lines),
    locateKey: (path) => positionOf(locate(path).key, lines),
  };
}

function describeKey({ offset, name = '', before }: InvalidKey, lines: LineCounter): YamlFault {
  const shown = isSafeKey(name) ? ` ${JSON.stringify(name)}` : '';
  const message =
    before === undefined
      ? 'a key must be a text, not a list or a mapping'
      : `duplicate key${shown}, first given on line ${positionOf(before, lines).line}`;
  return toFault({ offset, message }, lines);
}

function findTags(document: Document, lines: LineCounter): readonly YamlFault[] {
  const message = 'unknown tag (!): remove it, or put a value that starts with ! in quotes';
  return document.warnings
    .filter((warning) => warning.code === 'TAG_RESOLVE_FAILED')
    .map((warning) => toFault({ offset: warning.pos[0], message }, lines));
}

/** Finds the offsets of the key and the value at a path. */
function locator(document: Document, targets: ReadonlyMap<unknown, Node>) {
  const indexes = new WeakMap<YAMLMap, ReadonlyMap<string | undefined, Pair>>();
  const pairOf = (map: YAMLMap, key: PropertyKey): Pair | undefined => {
    const index =
      indexes.get(map) ?? new Map(map.items.map((pair) => [keyName(pair.key, targets), pair]));
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

function positionOf(offset: number, lines: LineCounter): Position {
  const { line, col } = lines.linePos(offset);
  // For an empty text the parser returns line 0.
  return { line: Math.max(line, 1), column: Math.max(col, 1) };
}

function toFault({ offset, message }: OffsetFault, lines: LineCounter): YamlFault {
  return { ...positionOf(offset, lines), message };
}
