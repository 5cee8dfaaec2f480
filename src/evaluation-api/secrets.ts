import type { Scrub } from '../domain/scrub.ts';
import { decodeEscapes, mayHaveEscapes } from './escapes.ts';
import { formsOf, type KeyForm } from './key-forms.ts';
import { createTextSearch, type TextSearch } from './text-search.ts';

/** Removes all keys that were read from texts that are logged, stored or shown (docs/security.md). */
export interface Secrets {
  readonly remember: (key: string) => void;
  readonly scrub: Scrub;
  /** Number that changes whenever scrubbing the same text may give another result. */
  readonly version: () => number;
}

/** Maximum number of keys; the key that was read longest ago is dropped first. Rotated keys are kept, as a service may echo an old key for a while. */
const MAX_KEYS = 256;
/** Longest escape of one character that a cut text can hide: `&amp;amp;#x0041;`, or `\u0041` with 16 backslashes. */
const MAX_ESCAPE_LENGTH = 32;
const REDACTED = '[redacted]';
/** Runs of hexadecimal digits that are long enough for a key. */
const HEX_DIGITS = /[\dA-Fa-f]{12,}/g;

/** A part of a text, the end excluded. */
interface Span {
  readonly start: number;
  readonly end: number;
}

interface Finder {
  readonly find: TextSearch<KeyForm>;
  /** Number of characters to search after the cut of a text, for a key that begins before it. */
  readonly lookAhead: number;
}

export function createSecrets(): Secrets {
  /** Forms by key, in the order in which the keys were last read. */
  const known = new Map<string, readonly KeyForm[]>();
  let finder: Finder | undefined;
  let version = 0;

  function remember(key: string): void {
    const before = known.get(key);
    known.delete(key);
    known.set(key, before ?? formsOf(key));
    if (before !== undefined) return;
    version += 1;
    const [oldest] = known.keys();
    if (known.size > MAX_KEYS && oldest !== undefined) known.delete(oldest);
    finder = undefined;
  }

  function scrub(text: string, maxLength = Infinity): string {
    finder ??= createFinder(known);
    const { find, lookAhead } = finder;
    // The result may be shorter than `end`, as a key can be longer than its replacement.
    for (let end = maxLength; end < text.length; end *= 2) {
      const scrubbed = redact(text, findKeys(text.slice(0, end + lookAhead), find), end);
      if (scrubbed.length >= maxLength) return scrubbed;
    }
    const spans = findKeys(text, find);
    return spans.length === 0 ? text : redact(text, spans, text.length);
  }

  return { remember, scrub, version: () => version };
}

function createFinder(keys: ReadonlyMap<string, readonly KeyForm[]>): Finder {
  const longest = keys.keys().reduce((length, key) => Math.max(length, key.length), 0);
  return {
    find: createTextSearch([...keys.values()].flat()),
    lookAhead: longest * MAX_ESCAPE_LENGTH,
  };
}

function findKeys(text: string, find: TextSearch<KeyForm>): readonly Span[] {
  const spans = findInAnyCase(text, find);
  if (!mayHaveEscapes(text)) return inOrder(spans);
  const decoded = decodeEscapes(text);
  const placeOf = (index: number) => decoded.starts[index] ?? text.length;
  const escaped = findInAnyCase(decoded.text, find).map(({ start, end }) => {
    return { start: placeOf(start), end: placeOf(end) };
  });
  return inOrder([...spans, ...escaped]);
}

function findInAnyCase(text: string, find: TextSearch<KeyForm>): readonly Span[] {
  const spans = findSpans(text, find);
  // Most texts contain none of these characters, and this check is faster.
  return /[A-F]/.test(text) ? [...spans, ...findInUpperCaseHex(text, find)] : spans;
}

function inOrder(spans: readonly Span[]): readonly Span[] {
  return spans.length < 2 ? spans : spans.toSorted((one, other) => one.start - other.start);
}

/** Finds keys in upper-case hexadecimal; the search itself covers lower case only. */
function findInUpperCaseHex(text: string, find: TextSearch<KeyForm>): readonly Span[] {
  const spans: Span[] = [];
  for (const { 0: digits, index } of text.matchAll(HEX_DIGITS)) {
    const small = digits.toLowerCase();
    if (small === digits) continue;
    for (const { start, end } of findSpans(small, find)) {
      spans.push({ start: index + start, end: index + end });
    }
  }
  return spans;
}

/** Returns the spans of keys in the order of the text; spans that overlap are merged. */
function findSpans(text: string, find: TextSearch<KeyForm>): readonly Span[] {
  const spans: Span[] = [];
  find(text, (form, found) => {
    let start = Math.max(0, found - form.text.length - form.before);
    let end = Math.min(text.length, found + form.after);
    for (let last = spans.at(-1); last !== undefined && last.end > start; last = spans.at(-1)) {
      start = Math.min(start, last.start);
      end = Math.max(end, last.end);
      spans.pop();
    }
    spans.push({ start, end });
  });
  return spans;
}

/** Returns the redacted text up to `end`, or up to the end of a key that begins before it. */
function redact(text: string, spans: readonly Span[], end: number): string {
  const parts: string[] = [];
  let at = 0;
  for (const span of spans) {
    if (span.start >= end) break;
    if (span.start >= at) parts.push(text.slice(at, span.start), REDACTED);
    at = Math.max(at, span.end);
  }
  return parts.join('') + text.slice(at, Math.max(at, end));
}
