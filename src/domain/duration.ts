/** Grammar of a duration: one or more units in descending order, each at most once. */
export const DURATION_PATTERN = '^(?=\\d)(\\d+d)?(\\d+h)?(\\d+m)?(\\d+s)?(\\d+ms)?$';

const DURATION = new RegExp(DURATION_PATTERN);
/** Length of each unit in ms, in the order of the grammar. */
const UNITS_MS = [86_400_000, 3_600_000, 60_000, 1000, 1] as const;

/** Parses `500ms`, `10s` or `1h30m` to ms; returns undefined for any other text (docs/specification.md#durations-and-sizes). */
export function parseDuration(text: string): number | undefined {
  const amounts: readonly (string | undefined)[] | undefined = DURATION.exec(text)?.slice(1);
  return amounts?.reduce((sum, amount, index) => {
    return sum + Number.parseInt(amount ?? '0', 10) * (UNITS_MS[index] ?? 0);
  }, 0);
}

const UNIT_NAMES: readonly (readonly [RegExp, string])[] = [
  [/\s+/g, ''],
  [/days?/g, 'd'],
  [/hours?|hrs?/g, 'h'],
  [/milliseconds?|millis|msecs?/g, 'ms'],
  [/minutes?|mins?/g, 'm'],
  [/seconds?|secs?/g, 's'],
];

/**
 * Suggests a duration for an invalid one, such as `10s` for `10 seconds`; undefined if there is none. A bare number gets
 * the unit of `example`.
 */
export function suggestDuration(text: string, example: string): string | undefined {
  if (/^\d+$/.test(text)) return text + example.replace(/^\d+/, '');
  const respelled = UNIT_NAMES.reduce(
    (spelling, [pattern, unit]) => spelling.replace(pattern, unit),
    text.toLowerCase(),
  );
  return parseDuration(respelled) === undefined ? undefined : respelled;
}
