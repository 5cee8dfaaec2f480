/** Licences that require only their notice. */
const ALLOWED = new Set(['MIT', 'ISC', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD']);

/**
 * Whether the `license` of a package is allowed. One allowed licence of an OR such as `(MIT OR Apache-2.0)` is enough. A text
 * with AND is refused, for a person to review.
 */
export function isAllowed(license: string): boolean {
  if (/\bAND\b/i.test(license)) return false;
  const choices = license.replaceAll(/[()]/g, '').split(' OR ');
  return choices.some((choice) => ALLOWED.has(choice.trim()));
}
