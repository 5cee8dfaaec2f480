/** Returns `, did you mean "…"?`; an empty text without a suggestion. */
export function didYouMean(suggestion: string | undefined): string {
  return suggestion === undefined ? '' : `, did you mean ${JSON.stringify(suggestion)}?`;
}

/**
 * Returns the candidate that `text` is probably meant to be; undefined if there is none. The closest candidate may differ
 * in up to a third of the letters; case, `_` and `-` are ignored. If none is that close, returns a candidate that begins
 * with `text`, or that `text` begins with.
 */
export function closest(text: string, candidates: readonly string[]): string | undefined {
  const plain = simplify(text);
  if (plain.length > 64) return undefined;
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(plain.length / 3)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(plain, simplify(candidate));
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  if (best !== undefined || plain.length < 3) return best;
  return candidates.find((candidate) => abbreviates(plain, simplify(candidate)));
}

function simplify(text: string): string {
  return text.toLowerCase().replaceAll(/[\s_-]/g, '');
}

function abbreviates(one: string, other: string): boolean {
  return other.startsWith(one) || one.startsWith(other);
}

/** Counts the letters that are missing, added, replaced or swapped with their neighbour. */
function editDistance(one: string, other: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, column) => column);
  for (let row = 1; row <= one.length; row++) {
    const current = [row];
    for (let column = 1; column <= other.length; column++) {
      const same = one[row - 1] === other[column - 1];
      const swapped = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      current.push(
        Math.min(
          (last[column] ?? 0) + 1,
          (current[column - 1] ?? 0) + 1,
          (last[column - 1] ?? 0) + (same ? 0 : 1),
          swapped ? (beforeLast[column - 2] ?? 0) + 1 : Infinity,
        ),
      );
    }
    [beforeLast, last] = [last, current];
  }
  return last[other.length] ?? 0;
}

const MAX_SHOWN_LENGTH = 64;

/** Returns a text in quotes; only the start of a long one. */
export function quoteId(text: string): string {
  return JSON.stringify(
    text.length > MAX_SHOWN_LENGTH ? `${text.slice(0, MAX_SHOWN_LENGTH)}…` : text,
  );
}
