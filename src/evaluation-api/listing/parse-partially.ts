import type { Steps } from '../../domain/steps.ts';
import { createJsonLexer, notJson } from './json-lexer.ts';

/** What of a JSON value is of use: the fields of an object, the items of an array, or just a text, number or the like. */
export interface Keep {
  readonly fields?: ReadonlyMap<string, Keep>;
  readonly items?: Keep;
}

/** A value that is no container. */
export const SCALAR: Keep = {};

/** Levels of arrays and objects, the outermost being 1 (docs/specification.md#fetching). */
export const MAX_DEPTH = 64;
/** Longest name that is compared, in characters with its quotes. No wanted name is longer, however it is escaped. */
const MAX_NAME_LENGTH = 100;
/** Number of characters that one step reads: some milliseconds. */
const STEP_LENGTH = 256 * 1024;

/** An object or array that has begun and not ended. */
interface Container {
  readonly end: '}' | ']';
  /** Where it is a member of an object. */
  readonly name: string;
  readonly keep: Keep | undefined;
  /** What is wanted of it, as far as it was read; undefined if `keep` is. */
  readonly kept: Kept | undefined;
}

type Kept = Record<string, unknown> | unknown[];

/**
 * The value of a JSON text, of which only what is wanted is built: an object of a million fields costs no more than its
 * text. A container that is wanted, but nothing that it holds, comes out empty.
 * @throws {SyntaxError} also if it is nested deeper than {@link MAX_DEPTH}
 */
export function* parsePartially(text: string, wanted: Keep): Steps<unknown> {
  const { position, peek, skip, skipString, skipLiteral } = createJsonLexer(text);
  const open: Container[] = [];
  let stepEnd = STEP_LENGTH;
  for (;;) {
    if (position() >= stepEnd) {
      yield;
      stepEnd = position() + STEP_LENGTH;
    }
    // Where a value begins, or the name of a member before it.
    const container = open.at(-1);
    let keep = container === undefined ? wanted : container.keep?.items;
    let name = '';
    let first = peek();
    let start = position();
    if (container?.end === '}') {
      if (!skip('"')) notJson();
      while (!skipString(STEP_LENGTH)) yield;
      const fields = container.keep?.fields;
      const isShort = position() - start <= MAX_NAME_LENGTH;
      if (fields !== undefined && isShort) name = nameOf(text.slice(start, position()));
      keep = fields?.get(name);
      if (!skip(':')) notJson();
      first = peek();
      start = position();
    }
    let value: unknown;
    if (skip('{') || skip('[')) {
      const inner = containerOf(first, name, keep);
      if (open.length === MAX_DEPTH) notJson();
      if (!skip(inner.end)) {
        open.push(inner);
        continue;
      }
      value = inner.kept;
    } else {
      if (!skip('"')) skipLiteral();
      else while (!skipString(STEP_LENGTH)) yield;
      if (keep !== undefined) value = JSON.parse(text.slice(start, position()));
    }
    // Where a value ends, and with it each container of which it is the last one.
    for (;;) {
      const parent = open.at(-1);
      if (parent === undefined) return peek() === '' ? value : notJson();
      if (keep !== undefined) put(parent.kept, name, value);
      if (skip(',')) break;
      if (!skip(parent.end)) notJson();
      open.pop();
      ({ name, keep, kept: value } = parent);
    }
  }
}

function containerOf(first: string, name: string, keep: Keep | undefined): Container {
  const isObject = first === '{';
  const empty: Kept = isObject ? {} : [];
  return { end: isObject ? '}' : ']', name, keep, kept: keep && empty };
}

function put(kept: Kept | undefined, name: string, value: unknown): void {
  if (Array.isArray(kept)) kept.push(value);
  else if (kept !== undefined) kept[name] = value;
}

function nameOf(quoted: string): string {
  return quoted.includes('\\') ? String(JSON.parse(quoted)) : quoted.slice(1, -1);
}
