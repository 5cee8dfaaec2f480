import { z } from 'zod';
import type { Checked } from './checked.ts';
import { DURATION_PATTERN, parseDuration, suggestDuration } from '../../domain/duration.ts';
import { VARIABLE_NAME } from '../environment.ts';
import { parseSize, SIZE_PATTERN, suggestSize } from './size.ts';
import { actualValue } from '../redaction.ts';
import { closest, didYouMean } from '../suggest.ts';

// Each message ends a sentence whose subject is the option: "must be …". None contains a value that could be a secret
// (redaction.ts).

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

/** Maximum length of a text, as of a path. A longer text is rejected unread, and no message contains it. */
export const MAX_TEXT_LENGTH = 4096;
const TOO_LONG = `must have at most ${MAX_TEXT_LENGTH} characters`;

/**
 * A text that is not empty.
 * @param what ends the sentence "must be …"
 * @param options `isShown`: messages may show a value of a wrong type; false for options that can hold a secret
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
    .min(1, { error: `must be ${what}, not empty`, abort: true })
    .max(MAX_TEXT_LENGTH, { error: TOO_LONG, abort: true });
}

/** A path, not resolved. */
export function path(description: string) {
  return text('a path')
    .refine((value) => !value.includes('\0'), { error: 'must be a path' })
    .refine((value) => !PEM.test(value), {
      error: 'must be the path of a file, not the content of the file',
    })
    .meta({ description });
}

/** Start of a certificate or key that is given in place of its path. */
const PEM = /-----BEGIN/;

/** Whether a value is a path as `path` accepts it. */
export function isPath(value: unknown): value is string {
  return path('').safeParse(value).success;
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

/** A duration within a range, parsed to ms. */
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

/** A duration within a range, parsed to ms, or one of these words. */
export function durationOr<const Word extends string>(
  words: readonly Word[],
  [example, min, max]: readonly [string, string, string],
  description: string,
) {
  const what = `${words.join(', ')} or a duration such as ${example}`;
  const amount = createAmount(what, [min, max], parseDuration, (input) =>
    suggestDuration(input, example),
  );
  return parsedText<number | Word>(what, (value) => {
    const word = words.find((each) => each === value);
    return word === undefined ? amount(value) : { value: word };
  }).meta({
    description: `${description} Durations from ${min} to ${max}.`,
    pattern: `^(${words.join('|')})$|${DURATION_PATTERN}`,
  });
}

/** A size within a range, parsed to bytes. */
export function size([fallback, min, max]: readonly [string, string, string], description: string) {
  return quantity(`a size such as ${fallback}`, [min, max], parseSize, suggestSize)
    .prefault(fallback)
    .meta({ description: `${description} From ${min} to ${max}.`, pattern: SIZE_PATTERN });
}

/** A number with a unit, within a range. */
function quantity(...limits: Parameters<typeof createAmount>) {
  return parsedText(limits[0], createAmount(...limits));
}

/** Returns the function that parses a number with a unit, within a range. */
function createAmount(
  what: string,
  [min, max]: readonly [string, string],
  parse: (value: string) => number | undefined,
  suggest: (value: string) => string | undefined,
): (value: string) => Checked<number> {
  const minAmount = parse(min) ?? 0;
  const maxAmount = parse(max) ?? Infinity;
  return (value) => {
    const amount = parse(value);
    const but = actualValue(value);
    if (amount === undefined)
      return { fault: `must be ${what}${but}${didYouMean(suggest(value))}` };
    if (amount < minAmount || amount > maxAmount)
      return { fault: `must be from ${min} to ${max}${but}` };
    return { value: amount };
  };
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
      const { fault: message, hint } = result;
      context.issues.push({ code: 'custom', message, params: { hint }, input: value });
      return z.NEVER;
    });
}

/** Returns the error message of an option that is no secret; it shows the value. */
export function wrongValue(what: string) {
  return ({ input }: { readonly input?: unknown }): string => {
    const value = actualValue(input);
    return value === '' ? wrongType(what)({ input }) : `must be ${what}${value}`;
  };
}

/** Returns the error message of an option; it shows only the type of the value. */
export function wrongType(what: string) {
  return ({ input }: { readonly input?: unknown }): string => {
    if (input === undefined) return `is missing: it must be ${what}`;
    if (input === null) return `is empty: it must be ${what}`;
    return `must be ${what}${actualType(input)}`;
  };
}

function actualType(input: unknown): string {
  if (Array.isArray(input)) return ', not a list';
  if (typeof input === 'object') return ', not a mapping';
  if (typeof input === 'boolean') return `, not ${input}`;
  return typeof input === 'string' ? ', not a text' : ', not a number';
}
