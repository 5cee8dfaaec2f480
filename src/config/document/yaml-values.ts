import {
  type Alias,
  type Document,
  type Node,
  type YAMLMap,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
} from 'yaml';
import { QUOTE_STARS, type OffsetFault } from './yaml-parser.ts';

/** The values of a document as plain JavaScript. */
export interface YamlValues {
  /** `null` for an empty document. Mappings have no prototype, so that names such as `__proto__` are ordinary keys. */
  readonly value: unknown;
  /** Nodes that aliases refer to, by alias. */
  readonly targets: ReadonlyMap<unknown, Node>;
  /** Keys that are no text, and duplicate keys. */
  readonly invalidKeys: readonly InvalidKey[];
  readonly fault?: never;
}

/** An invalid key: `before` is the offset of the earlier key with the same name; undefined if the key is no text. */
export interface InvalidKey {
  readonly offset: number;
  readonly name: string | undefined;
  readonly before: number | undefined;
}

/** Maximum number of values with all aliases expanded, so that a few bytes cannot become gigabytes. */
const MAX_VALUES = 1_000_000;

interface Anchored {
  readonly node: Node;
  /** Undefined until the anchored value is complete. */
  made?: { readonly value: unknown; readonly count: number };
}

/** Reads the values of a document. An alias shares the object of its anchor, so that aliases need no memory. */
export function readValues(document: Document): YamlValues | { readonly fault: OffsetFault } {
  const anchors = new Map<string, Anchored>();
  const targets = new Map<unknown, Node>();
  const invalidKeys: InvalidKey[] = [];
  let count = 0;
  let fault: OffsetFault | undefined;

  function valueOf(node: unknown): unknown {
    if (fault !== undefined) return null;
    if (isAlias(node)) return valueOfAlias(node);
    const anchored = isNode(node) && node.anchor !== undefined ? { node } : undefined;
    return anchored === undefined ? makeValue(node) : makeAnchored(anchored);
  }

  function makeAnchored(anchored: Anchored): unknown {
    const before = count;
    anchors.set(anchored.node.anchor ?? '', anchored);
    const value = makeValue(anchored.node);
    anchored.made = { value, count: count - before };
    return value;
  }

  function valueOfAlias(alias: Alias): unknown {
    const anchored = anchors.get(alias.source);
    if (anchored === undefined) return fail(alias, `not valid YAML: ${QUOTE_STARS}`);
    const { node, made } = anchored;
    if (made === undefined) {
      return fail(alias, 'not usable YAML: this alias (*) refers to a value that contains it');
    }
    targets.set(alias, node);
    add(alias, made.count);
    return made.value;
  }

  function makeValue(node: unknown): unknown {
    add(node, 1);
    if (isMap(node)) return makeMapping(node);
    if (isSeq(node)) return node.items.map(valueOf);
    return isScalar(node) ? node.value : null;
  }

  function makeMapping({ items }: YAMLMap): object {
    const mapping: Record<string, unknown> = Object.create(null);
    const offsets = new Map<string, number>();
    for (const { key, value } of items) {
      valueOf(key);
      const name = keyName(key, targets);
      const offset = startOf(key) ?? 0;
      const before = name === undefined ? undefined : offsets.get(name);
      if (name === undefined || before !== undefined) invalidKeys.push({ offset, name, before });
      else offsets.set(name, offset);
      const made = valueOf(value);
      if (name !== undefined) mapping[name] = made;
    }
    return mapping;
  }

  function add(node: unknown, more: number): void {
    count += more;
    if (count <= MAX_VALUES) return;
    fail(node, `not usable YAML: more than ${MAX_VALUES} values once aliases are expanded`);
  }

  function fail(node: unknown, message: string): null {
    fault ??= { offset: startOf(node) ?? 0, message };
    return null;
  }

  const value = valueOf(document.contents);
  return fault === undefined ? { value, targets, invalidKeys } : { fault };
}

/** Returns a key as it is written; undefined for a list or a mapping. */
export function keyName(key: unknown, targets: ReadonlyMap<unknown, Node>): string | undefined {
  const node = targets.get(key) ?? key;
  if (!isScalar(node)) return undefined;
  // The source text, because 0123 and 123 are different names.
  return typeof node.value === 'string' ? node.value : (node.source ?? '');
}

export function startOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined;
}
