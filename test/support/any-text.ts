import * as fc from 'fast-check';

const FIRST_SURROGATE = 0xd800;
const SURROGATES = 0x800;

/** Any character of Unicode, without halves of surrogate pairs, as in fast-check's unit `binary`. */
const character = fc
  .nat({ max: 0x10ffff - SURROGATES })
  .map((n) => String.fromCodePoint(n < FIRST_SURROGATE ? n : n + SURROGATES), numberOf);

/**
 * Returns the number of a character. Without it, fast-check leaves out its dangerous texts, such as `__proto__`.
 * @throws {Error} if it is not one character: fast-check tries longer ones
 */
function numberOf(text: unknown): number {
  const [one = '', ...others] = String(text);
  const codePoint = one.codePointAt(0);
  if (codePoint === undefined || others.length > 0) throw new Error('not one character');
  return codePoint < FIRST_SURROGATE ? codePoint : codePoint - SURROGATES;
}

/**
 * Generates the same texts as `fc.string({ unit: 'binary' })`. That one first lists all of Unicode, which takes a second of
 * CPU time in each process.
 */
export function anyText(constraints: { readonly maxLength?: number } = {}): fc.Arbitrary<string> {
  return fc.string({ ...constraints, unit: character });
}
