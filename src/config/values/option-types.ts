import { z } from 'zod';
import type { Checked } from './address.ts';
import { DURATION_PATTERN, parseDuration, suggestDuration } from './duration.ts';
import { VARIABLE_NAME } from '../environment.ts';
import { parseSize, SIZE_PATTERN, suggestSize } from './size.ts';
import { actualValue } from '../redaction.ts';
import { closest, didYouMean } from '../suggest.ts';

// Every message completes a sentence whose subject is the option: "must be …". None repeats a value that could hold a
// key (redaction.ts).

/** A mapping that refuses unknown keys. */
export function mapping<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  return z.strictObject(shape, { error: wrongType('a mapping (key: value)') });
}

/** The length limit of paths. A longer text is refused unread, and no message repeats it. */
export const MAX_TEXT_LENGTH = 4096;
const TOO_LONG = `must have at most ${MAX_TEXT_LENGTH} characters`;

/**
 * A text with something in it; `what` says what it is, after `must be`.
 * @param options `isShown`: a number in its place can be no secret and is shown
 */
export function text(what: string, { isShown = false } = {}) {
  return z
    .string({
      error: ({ input }) => {
        const needsQuotes = typeof input === 'number' || typeof input === 'boolean';
        const fault = (isShown ? wrongValue : wrongType)(what)({ input });
        return needsQuotes ? `${fault}: put it in quotes` : fault;
      },
    })
    .min(1, { error: `must be ${what}, not empty` })
    .max(MAX_TEXT_LENGTH, { error: TOO_LONG });
}

/** A path, still as it is written. */
export function path(description: string) {
  return text('a path')
    .refine((value) => !value.includes('\0'), { error: 'must be a path' })
    .refine((value) => !PEM.test(value), {
      error: 'must be the path of a file, not the content of the file',
    })
    .meta({ description });
}

/** Start of a certificate or key that was given in the place of its path. */
const PEM = /-----BEGIN/;

/** Whether a value is a path as `path` accepts it. */
export function isPath(value: unknown): value is string {
  return path('').safeParse(value).success;
}

/** The name of an environment variable, if it is given. */
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

/** One of these names. */
export function choice<const Name extends string>(
  names: readonly Name[],
  what = `one of ${names.join(', ')}`,
) {
  return z.enum(names, {
    error: ({ input }) =>
      typeof input === 'string'
        ? `must be ${what}${actualValue(input)}${didYouMean(closest(input, names) || undefined)}`
        : wrongValue(what)({ input }),
  });
}

/** A whole number within a range. */
export function wholeNumber(
  [fallback, min, max]: readonly [number, number, number],
  description: string,
) {
  const what = `a whole number from ${min} to ${max}`;
  const error = wrongValue(what);
  return z
    .int({ error })
    .min(min, { error })
    .max(max, { error })
    .prefault(fallback)
    .meta({ description });
}

/** A duration within a range, as ms. */
export function duration(
  [fallback, min, max]: readonly [string, string, string],
  description: string,
) {
  const example = fallback === '0s' ? '10s' : fallback;
  return quantity(`a duration such as ${example}`, [min, max], parseDuration, (input) =>
    suggestDuration(input, example),
  )
    .prefault(fallback)
    .meta({ description: `${description} From ${min} to ${max}.`, pattern: DURATION_PATTERN });
}

/** A size within a range, as bytes. */
export function size([fallback, min, max]: readonly [string, string, string], description: string) {
  return quantity(`a size such as ${fallback}`, [min, max], parseSize, suggestSize)
    .prefault(fallback)
    .meta({ description: `${description} From ${min} to ${max}.`, pattern: SIZE_PATTERN });
}

/** A number with a unit. */
function quantity(
  what: string,
  [min, max]: readonly [string, string],
  parse: (value: string) => number | undefined,
  suggest: (value: string) => string | undefined,
) {
  const least = parse(min) ?? 0;
  const most = parse(max) ?? Infinity;
  return checked(what, (value) => {
    const amount = parse(value);
    const but = actualValue(value);
    if (amount === undefined)
      return { fault: `must be ${what}${but}${didYouMean(suggest(value))}` };
    if (amount < least || amount > most) return { fault: `must be from ${min} to ${max}${but}` };
    return { value: amount };
  });
}

/** A text that `check` turns into what the program uses. A number is checked as a text for the sake of its hint. */
export function checked<T>(what: string, check: (value: string) => Checked<T>) {
  return z
    .string({
      error: ({ input }) =>
        (typeof input === 'number' ? check(String(input)).fault : undefined) ??
        wrongType(what)({ input }),
    })
    .transform((value, context) => {
      const result = value.length > MAX_TEXT_LENGTH ? { fault: TOO_LONG } : check(value);
      if (result.fault === undefined) return result.value;
      const { fault: message, hint } = result;
      context.issues.push({ code: 'custom', message, params: { hint }, input: value });
      return z.NEVER;
    });
}

/** What is wrong with a value of an option that holds no secret. */
export function wrongValue(what: string) {
  return ({ input }: { readonly input?: unknown }): string => {
    const value = actualValue(input);
    return value === '' ? wrongType(what)({ input }) : `must be ${what}${value}`;
  };
}

/** What is wrong with a value of another type, without repeating it. */
export function wrongType(what: string) {
  return ({ input }: { readonly input?: unknown }): string => {
    if (input === undefined) return `is missing: it must be ${what}`;
    if (input === null) return `is empty: it must be ${what}`;
    return `must be ${what}${butIs(input)}`;
  };
}

function butIs(input: unknown): string {
  if (Array.isArray(input)) return ', not a list';
  if (typeof input === 'object') return ', not a mapping';
  if (typeof input === 'boolean') return `, not ${input}`;
  return typeof input === 'string' ? ', not a text' : ', not a number';
}
