/** Counters of a project at each scrape: prompts that have failed and completed so far. */
export interface Traffic {
  readonly failed: readonly number[];
  readonly completed: readonly number[];
}

interface Plan {
  /** Prompts that finish on an average day. */
  readonly perDay: number;
  /** Share of them that fails while the project is healthy. */
  readonly failing: number;
  /** How many failures come together; 1 if each is independent of the others. */
  readonly burst: number;
  readonly minutes: number;
  /** Minutes between two scrapes. */
  readonly step: number;
  /** From this minute on every prompt fails. */
  readonly outage?: number;
}

const MINUTES_A_DAY = 1440;
/** The failures of a burst are spread over this time. */
const BURST_MINUTES = 5;

/** Generates the prompts of a project as Poisson processes. */
export function trafficOf(
  { perDay, failing, burst, minutes, step, outage = Infinity }: Plan,
  random: () => number,
): Traffic {
  const failed = Array<number>(Math.ceil(minutes / step)).fill(0);
  const completed = [...failed];
  // The next scrape is the first to show a prompt.
  const add = (counts: number[], at: number) => {
    const scrape = Math.ceil(at / step);
    if (scrape < counts.length) counts[scrape] = (counts[scrape] ?? 0) + 1;
  };
  const perMinute = perDay / MINUTES_A_DAY;
  const healthyEnd = Math.min(outage, minutes);
  for (const at of arrivals(0, healthyEnd, perMinute * (1 - failing), random)) add(completed, at);
  for (const at of arrivals(0, healthyEnd, (perMinute * failing) / burst, random)) {
    for (let count = 0; count < burst; count += 1) {
      add(failed, burst === 1 ? at : at + random() * BURST_MINUTES);
    }
  }
  for (const at of arrivals(healthyEnd, minutes, perMinute, random)) add(failed, at);
  return { failed: totals(failed), completed: totals(completed) };
}

function* arrivals(
  from: number,
  to: number,
  perMinute: number,
  random: () => number,
): Generator<number> {
  for (let at = from; ;) {
    at -= Math.log(1 - random()) / perMinute;
    if (at >= to) return;
    yield at;
  }
}

function totals(counts: readonly number[]): readonly number[] {
  let total = 0;
  return counts.map((count) => (total += count));
}
