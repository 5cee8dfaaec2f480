import type { Steps } from '../../domain/steps.ts';
import { createJsonLexer, throwNotJson } from './json-lexer.ts';

/** Parts of a JSON value to keep: fields of an object, items of an array, or (without either) a scalar. */
export interface Keep {
  readonly fields?: ReadonlyMap<string, Keep>;
  readonly items?: Keep;
}

/** Keeps a string, number, boolean or null. */
export const SCALAR: Keep = {};

/** Levels of arrays and objects, the outermost being 1 (docs/specification.md#fetching). */
export const MAX_DEPTH = 64;
/** Maximum length of a name that is compared, in characters with quotes. Every wanted name is shorter, even escaped. */
const MAX_NAME_LENGTH = 100;
/** Number of characters read in one step: a few milliseconds. */
const STEP_LENGTH = 256 * 1024;

/** An object or array whose end has not been read. */
interface Container {
  readonly end: '}' | ']';
  /** Its name as a member of an object; empty otherwise. */
  readonly name: string;
  readonly keep: Keep | undefined;
  /** Kept parts read so far; undefined if `keep` is. */
  readonly kept: Kept | undefined;
}

type Kept = Record<string, unknown> | unknown[];

/**
 * Parses JSON text but builds only the wanted parts: a million other fields cost no more than their text. A wanted
 * container without wanted content comes out empty.
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
    // A value begins here, or the name of a member before it.
    const container = open.at(-1);
    let keep = container === undefined ? wanted : container.keep?.items;
    let name = '';
    let first = peek();
    let start = position();
    if (container?.end === '}') {
      if (!skip('"')) throwNotJson();
      while (!skipString(STEP_LENGTH)) yield;
      const fields = container.keep?.fields;
      const isShort = position() - start <= MAX_NAME_LENGTH;
      if (fields !== undefined && isShort) name = nameOf(text.slice(start, position()));
      keep = fields?.get(name);
      if (!skip(':')) throwNotJson();
      first = peek();
      start = position();
    }
    let value: unknown;
    if (skip('{') || skip('[')) {
      const inner = containerOf(first, name, keep);
      if (open.length === MAX_DEPTH) throwNotJson();
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
    // A value ends here, and with it each container whose last value it is.
    for (;;) {
      const parent = open.at(-1);
      if (parent === undefined) return peek() === '' ? value : throwNotJson();
      if (keep !== undefined) put(parent.kept, name, value);
      if (skip(',')) break;
      if (!skip(parent.end)) throwNotJson();
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
