/** Durations of one class of prompts: lognormal (`sigma`), or Pareto (`alpha`). */
export interface Part {
  /** Share of the project's prompts. */
  readonly share: number;
  /** Median duration, ms. */
  readonly median: number;
  readonly sigma?: number;
  readonly alpha?: number;
}

/** Draws the duration of one prompt, ms. */
export function drawDuration(parts: readonly Part[], random: () => number): number {
  let choice = parts.length > 1 ? random() : 0;
  for (const part of parts) {
    choice -= part.share;
    if (choice <= 0) return drawOf(part, random);
  }
  return drawOf(lastOf(parts), random);
}

/** Returns the duration that this share of the prompts does not exceed, ms. */
export function quantileOf(parts: readonly Part[], share: number): number {
  let [low, high] = [1, 1e15];
  while (high / low > 1.0001) {
    const middle = Math.sqrt(low * high);
    const above = parts.reduce((sum, part) => sum + part.share * shareAbove(part, middle), 0);
    if (above > 1 - share) low = middle;
    else high = middle;
  }
  return high;
}

/** Returns the share of the prompts that take longer. */
function shareAbove({ median, sigma, alpha }: Part, ms: number): number {
  if (alpha !== undefined) return Math.min(1, 0.5 * (median / ms) ** alpha);
  return normalTail(Math.log(ms / median) / (sigma ?? 1));
}

function drawOf({ median, sigma, alpha }: Part, random: () => number): number {
  const uniform = 1 - random();
  if (alpha !== undefined) return median * (2 * uniform) ** (-1 / alpha);
  const normal = Math.sqrt(-2 * Math.log(uniform)) * Math.cos(2 * Math.PI * random());
  return median * Math.exp((sigma ?? 1) * normal);
}

function lastOf(parts: readonly Part[]): Part {
  const last = parts.at(-1);
  if (last === undefined) throw new Error('a fleet without prompts');
  return last;
}

/** Returns the probability that a normal variable exceeds z; relative error below 1e-6 (Numerical Recipes, erfcc). */
function normalTail(z: number): number {
  const x = Math.abs(z) / Math.SQRT2;
  const t = 1 / (1 + x / 2);
  const terms = [
    -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398,
    1.48851587, -0.82215223, 0.17087277,
  ];
  const polynomial = terms.reduceRight((sum, term) => sum * t + term, 0);
  const tail = (t * Math.exp(-x * x + polynomial)) / 2;
  return z < 0 ? 1 - tail : tail;
}
