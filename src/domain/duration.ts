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
