import type { Sample } from './exposition.ts';

/** Counts durations in buckets, for the samples of `histogramSamples`. */
export class Histogram {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sumMs = 0;

  /** Takes upper bounds in seconds, ascending, without +Inf. */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = Array<number>(bounds.length + 1).fill(0);
  }

  observe(ms: number): void {
    const bucket = this.#bounds.findIndex((bound) => ms <= bound * 1000);
    const index = bucket === -1 ? this.#bounds.length : bucket;
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    this.#sumMs += ms;
  }

  /** Returns the cumulative buckets, then sum (in seconds) and count. */
  values(): readonly number[] {
    let total = 0;
    const buckets = this.#counts.map((count) => (total += count));
    return [...buckets, this.#sumMs / 1000, total];
  }
}

/** Returns the samples of a histogram in the order of its `values`. */
export function histogramSamples(
  bounds: readonly number[],
  labels: Readonly<Record<string, string>>,
): readonly Sample[] {
  const buckets = [...bounds.map(String), '+Inf'].map((le): Sample => ({
    suffix: '_bucket',
    labels: { ...labels, le },
  }));
  return [...buckets, { suffix: '_sum', labels }, { suffix: '_count', labels }];
}
