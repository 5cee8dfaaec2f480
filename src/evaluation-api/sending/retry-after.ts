const MAX_WAIT_MS = 5 * 60 * 1000;

/** The two forms of an HTTP date that name their zone; `Date.parse` also accepts ambiguous ones. */
const HTTP_DATE = /^[A-Z][a-z]{2,8}, .+ GMT$/;

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
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, MAX_WAIT_MS);
  if (!HTTP_DATE.test(text)) return undefined;
  const wait = Date.parse(text) - now;
  return wait >= 0 ? Math.min(wait, MAX_WAIT_MS) : undefined;
}
