const MAX_WAIT_MS = 5 * 60 * 1000;

/** The two forms of an HTTP date that name their zone; `Date.parse` also accepts ambiguous ones. */
const HTTP_DATE = /^[A-Z][a-z]{2,8}, .+ GMT$/;
/** The form of C's asctime, which is in UTC too. */
const ASCTIME_DATE = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}$/;

/**
 * Returns the wait that a `Retry-After` header asks for, ms, at most 5 minutes (docs/specification.md#retry-after);
 * undefined if the header is invalid.
 * @param now epoch ms
 */
export function parseRetryAfter(
  header: string | readonly string[] | undefined,
  now: number,
): number | undefined {
  const text = (typeof header === 'string' ? header : header?.[0])?.trim();
  if (text === undefined) return undefined;
  const wait = /^\d+(?:\.\d+)?$/.test(text)
    ? Math.ceil(Number(text)) * 1000
    : parseDate(text) - now;
  return Number.isNaN(wait) ? undefined : Math.min(Math.max(wait, 0), MAX_WAIT_MS);
}

/** Returns the time of an HTTP date, epoch ms; NaN if it is none. */
function parseDate(text: string): number {
  if (HTTP_DATE.test(text)) return Date.parse(text);
  return ASCTIME_DATE.test(text) ? Date.parse(`${text} GMT`) : NaN;
}
