import type { Scrub } from '../domain/scrub.ts';
import { ApiError } from '../monitor/errors.ts';
import { isObject } from './json.ts';
import type { Headers } from './sending/body.ts';
import { cleanText, cutCodePoints } from './text.ts';

/** Beginning of a body that is kept to describe it, in bytes: with room for a key in it that is cut out whole. */
export const KEPT_BEGINNING_BYTES = 64 * 1024;

/** Lengths in code points of what an error quotes. */
const MAX_BEGINNING_LENGTH = 200;
const MAX_TYPE_LENGTH = 100;
const MAX_NAME_LENGTH = 64;
const MAX_VALUE_LENGTH = 100;
/** Names of fields that an error lists. */
const MAX_NAMES = 10;

export interface UnusableBody {
  readonly headers: Headers;
  /** The first bytes of the body, or all of them. */
  readonly beginning: Buffer;
  readonly wanted: 'array' | 'object';
}

/** Returns the error of a 200 that cannot be used, with what came instead: content type, kind and beginning of the body. */
export function describeUnusable(
  error: ApiError,
  { headers, beginning, wanted }: UnusableBody,
  scrub: Scrub,
): ApiError {
  const type = [headers['content-type'] ?? []].flat().join(', ');
  // Scrubbed whole: a part of it could be a part of a key.
  const text = scrub(textOf(beginning));
  const kind = isUtf16(beginning) ? 'UTF-16, and must be UTF-8' : kindOf(text, wanted, scrub);
  const parts = [
    error.message,
    ...(kind === undefined ? [] : [`it is ${kind}`]),
    type === ''
      ? 'it has no content type'
      : `its content type is ${quote(type, MAX_TYPE_LENGTH, scrub)}`,
    ...(text === '' ? [] : [`it begins ${quote(text, MAX_BEGINNING_LENGTH, scrub)}`]),
  ];
  return new ApiError(error.reason, parts.join('; '), error.details);
}

/** Says what a body is in place of JSON of the wanted type; undefined if it begins like that. */
function kindOf(text: string, wanted: UnusableBody['wanted'], scrub: Scrub): string | undefined {
  const body = text.trim();
  const [first = ''] = body;
  if (first === (wanted === 'array' ? '[' : '{')) return undefined;
  if (first === '') return 'empty';
  if (first === '<') return 'HTML or XML, such as a page to log in';
  if (first === '[') return 'an array';
  if (first === '"') return 'a text';
  if (/^(?:null|true|false|-?\d+)\b/.test(body)) return cleanText(body, MAX_NAME_LENGTH, scrub);
  if (first !== '{') return 'no JSON, or has something before it';
  if (/^\{.*\}\r?\n\s*\{/.test(body)) return 'an object on each line (NDJSON)';
  const list = /"([^"\\]*)"\s*:\s*\[/.exec(body)?.[1];
  return list === undefined
    ? 'an object'
    : `an object with an array in the field ${quote(list, MAX_NAME_LENGTH, scrub)}`;
}

function isUtf16(body: Buffer): boolean {
  return /^(?:\xff\xfe|\xfe\xff|[^\0]\0|\0[^\0])/.test(body.toString('latin1', 0, 2));
}

/** Decodes the beginning of a body, in UTF-16 too, as far as it is text. */
function textOf(body: Buffer): string {
  if (!isUtf16(body)) return body.toString('utf8').replace(/^\ufeff/, '');
  const isBigEndian = body[0] === 0 || body[0] === 0xfe;
  return new TextDecoder(isBigEndian ? 'utf-16be' : 'utf-16le').decode(body);
}

/** Says why an item of a listing cannot be used. */
export function describeItem(
  item: unknown,
  { index, isIdUsable }: { readonly index: number; readonly isIdUsable: boolean },
  scrub: Scrub,
): string {
  if (!isObject(item) || Array.isArray(item)) {
    return `item ${index} is ${shown(item, scrub)}, not an object`;
  }
  const field = isIdUsable ? 'status' : 'id';
  if (Object.hasOwn(item, field)) {
    const rule = field === 'id' ? 'a text of 1 to 512 characters without a key' : 'a text';
    return `the ${field} of item ${index} is ${shown(item[field], scrub)}, and must be ${rule}`;
  }
  const names = Object.keys(item).slice(0, MAX_NAMES);
  const list = names.map((name) => quote(name, MAX_NAME_LENGTH, scrub)).join(', ');
  return `item ${index} has no field ${field}${list === '' ? '' : `, but ${list}`}`;
}

/** Returns a value of JSON as an error shows it. */
function shown(value: unknown, scrub: Scrub): string {
  if (typeof value === 'string') return `the text ${quote(value, MAX_VALUE_LENGTH, scrub)}`;
  if (typeof value === 'number')
    return `the number ${cleanText(String(value), MAX_VALUE_LENGTH, scrub)}`;
  if (Array.isArray(value)) return 'an array';
  return isObject(value) ? 'an object' : String(value);
}

/** Returns the start of an untrusted text, scrubbed, on one line and in quotes. */
function quote(text: string, max: number, scrub: Scrub): string {
  // White space is joined after the scrub, because a key may contain spaces.
  const clean = cleanText(text, 2 * max, scrub)
    .replaceAll(/\s+/g, ' ')
    .trim();
  return JSON.stringify(cutCodePoints(clean, max));
}
