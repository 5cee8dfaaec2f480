import { z } from 'zod';
import { DURATION_PATTERN, parseDuration } from '../domain/options.ts';
import { VARIABLE_NAME } from './environment.ts';
import { quoteId } from '../domain/suggest.ts';

// The types of options. Each message ends a sentence whose subject is the option: "must be …". It shows the value, except that of
// an option that can hold a secret: an address with a login, the file or the variable of a key, and the address of the heartbeat.

/** A parsed value, or the error as `must …`. */
export type Checked<T> =
  | { readonly value: T; readonly fault?: never }
  | { readonly fault: string; readonly value?: never };

/** Maximum length of a text, as of a path. A longer text is rejected unread, and no message contains it. */
export const MAX_TEXT_LENGTH = 4096;
const TOO_LONG = `must have at most ${MAX_TEXT_LENGTH} characters`;

/** What zod passes to the function that describes an error. */
interface Issue {
  readonly input?: unknown;
}

/** Returns the error message of an option; it shows only the type of the value. */
export function wrongType(what: string) {
  return ({ input }: Issue): string => {
    if (input === undefined) return `is missing: it must be ${what}`;
    if (input === null) return `is empty: it must be ${what}`;
    return `must be ${what}, not ${typeName(input)}`;
  };
}

function typeName(input: unknown): string {
  if (Array.isArray(input)) return 'a list';
  if (typeof input === 'object') return 'a mapping';
  if (typeof input === 'boolean') return String(input);
  return typeof input === 'string' ? 'a text' : 'a number';
}

/** Returns the error message of an option that is no secret; it shows the value. */
export function wrongValue(what: string) {
  return ({ input }: Issue): string =>
    input === undefined || input === null || typeof input === 'object'
      ? wrongType(what)({ input })
      : `must be ${what}${butNot(input)}`;
}

/** Returns `, not …` with the wrong value of an option that is no secret. */
export function butNot(value: unknown): string {
  if (value === '') return ', not empty';
  return `, not ${typeof value === 'string' ? quoteId(value) : String(value)}`;
}

/**
 * A mapping that rejects unknown keys.
 * @param advise returns what to write instead of a value of a wrong type
 */
export function mapping<Shape extends z.core.$ZodLooseShape>(
  shape: Shape,
  advise: (input: unknown) => string = () => '',
) {
  const describe = wrongType('a mapping (key: value)');
  return z.strictObject(shape, { error: ({ input }) => `${describe({ input })}${advise(input)}` });
}

/**
 * A text that is not empty.
 * @param what ends the sentence "must be …"
 * @param describe describes a value of another type; `wrongType` for options that can hold a secret
 */
export function text(what: string, describe = wrongType) {
  return z
    .string({
      error: ({ input }) => {
        const needsQuotes = typeof input === 'number' || typeof input === 'boolean';
        return `${describe(what)({ input })}${needsQuotes ? ': put it in quotes' : ''}`;
      },
    })
    .min(1, { error: `must be ${what}, not empty`, abort: true })
    .max(MAX_TEXT_LENGTH, { error: TOO_LONG, abort: true });
}

/** A path, not resolved. */
export function path(description: string) {
  return text('a path')
    .refine((value) => !value.includes('\0'), { error: 'must be a path' })
    .refine((value) => !value.includes('-----BEGIN'), {
      error: 'must be the path of a file, not the content of the file',
    })
    .meta({ description });
}

/** The optional name of an environment variable. */
export function variableName(description: string) {
  return z
    .string({ error: wrongType('the name of an environment variable') })
    .max(MAX_TEXT_LENGTH, { error: TOO_LONG })
    .regex(VARIABLE_NAME, {
      error: 'must be the name of an environment variable, made of letters, digits and _',
    })
    .meta({ description })
    .optional();
}

/** True or false. */
export function flag(fallback: boolean, description: string) {
  return z
    .boolean({ error: wrongValue('true or false') })
    .prefault(fallback)
    .meta({ description });
}

/** A name from a list. */
export function choice<const Name extends string>(
  names: readonly Name[],
  what = `one of ${names.join(', ')}`,
) {
  return z.enum(names, { error: wrongValue(what) });
}

/** A whole number within a range. */
export function wholeNumber(
  [fallback, min, max]: readonly [number, number, number],
  description: string,
) {
  const error = wrongValue(`a whole number from ${min} to ${max}`);
  return z
    .int({ error })
    .min(min, { error })
    .max(max, { error })
    .prefault(fallback)
    .meta({ description });
}

/** A duration within a range, parsed to ms. */
export function duration(
  [fallback, min, max]: readonly [string, string, string],
  description: string,
) {
  const what = `a duration such as ${fallback === '0s' ? '10s' : fallback}`;
  return parsedText(what, amountParser(what, [min, max], parseDuration))
    .prefault(fallback)
    .meta({ description: `${description} From ${min} to ${max}.`, pattern: DURATION_PATTERN });
}

/** A duration within a range, parsed to ms, or one of these words. */
export function durationOr<const Word extends string>(
  words: readonly Word[],
  [example, min, max]: readonly [string, string, string],
  description: string,
) {
  const what = `${words.join(', ')} or a duration such as ${example}`;
  const parse = amountParser(what, [min, max], parseDuration);
  return parsedText<number | Word>(what, (value) => {
    const word = words.find((each) => each === value);
    return word === undefined ? parse(value) : { value: word };
  }).meta({
    description: `${description} Durations from ${min} to ${max}.`,
    pattern: `^(${words.join('|')})$|${DURATION_PATTERN}`,
  });
}

/** A size within a range, parsed to bytes. */
export function size([fallback, min, max]: readonly [string, string, string], description: string) {
  const what = `a size such as ${fallback}`;
  return parsedText(what, amountParser(what, [min, max], parseSize))
    .prefault(fallback)
    .meta({ description: `${description} From ${min} to ${max}.`, pattern: SIZE_PATTERN });
}

const BYTES: Readonly<Record<string, number>> = {
  B: 1,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
};

/** Grammar of a size. */
export const SIZE_PATTERN = '^(\\d+)(B|KiB|MiB|GiB)$';

/** Parses `512KiB` or `64MiB` to bytes; returns undefined for any other text (docs/specification.md#durations-and-sizes). */
function parseSize(value: string): number | undefined {
  const [, digits, unit = ''] = new RegExp(SIZE_PATTERN).exec(value) ?? [];
  return digits === undefined ? undefined : Number(digits) * (BYTES[unit] ?? 0);
}

/** Returns the function that parses a number with a unit, within a range. */
function amountParser(
  what: string,
  [min, max]: readonly [string, string],
  parse: (value: string) => number | undefined,
): (value: string) => Checked<number> {
  const [minAmount = 0, maxAmount = Infinity] = [parse(min), parse(max)];
  return (value) => {
    const amount = parse(value);
    if (amount === undefined) return { fault: `must be ${what}${butNot(value)}` };
    return amount < minAmount || amount > maxAmount
      ? { fault: `must be from ${min} to ${max}${butNot(value)}` }
      : { value: amount };
  };
}

let usualZones: ReadonlySet<string> | undefined;

/** Parses an IANA time zone and returns its usual spelling. Offsets such as `+01:00` have no daylight saving and are rejected. */
export function parseTimezone(value: string): Checked<string> {
  usualZones ??= new Set(['UTC', ...Intl.supportedValuesOf('timeZone')]);
  // Forty times faster than the check below; thousands of projects may have a zone.
  if (usualZones.has(value)) return { value };
  const fault = `must be a time zone such as UTC or Europe/Berlin${butNot(value)}`;
  if (/^[+-]/.test(value)) return { fault };
  try {
    const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: value }).resolvedOptions();
    return { value: timeZone.toLowerCase() === value.toLowerCase() ? timeZone : value };
  } catch {
    return { fault };
  }
}

/** A text that `parse` converts. For a number, `parse` supplies the error message. */
export function parsedText<T>(what: string, parse: (value: string) => Checked<T>) {
  return z
    .string({
      error: ({ input }) =>
        (typeof input === 'number' ? parse(String(input)).fault : undefined) ??
        wrongType(what)({ input }),
    })
    .transform((value, context) => {
      const result = value.length > MAX_TEXT_LENGTH ? { fault: TOO_LONG } : parse(value);
      if (result.fault === undefined) return result.value;
      context.issues.push({ code: 'custom', message: result.fault, input: value });
      return z.NEVER;
    });
}
