/** One daemon with SQLite, three workers on the model of PostgreSQL's side, or the same on a real server. */
export const PARTS = ['daemon', 'workers', 'server'] as const;
export type Part = (typeof PARTS)[number];

/** Kinds of faults of a run. Without `bad network` or `bad store`, no single request or write is lost or held up either. */
const FAULT_KINDS = [
  'kill',
  'stop',
  'pause',
  'clock set',
  'bad network',
  'bad store',
  'failover',
  'partition',
  'reload',
] as const;

export type FaultKind = (typeof FAULT_KINDS)[number];

/** A run: these numbers decide everything that happens in it. */
export interface Scenario {
  readonly part: Part;
  readonly seed: number;
  /** Simulated time. */
  readonly hours: number;
  /** Number of projects, at most {@link MAX_PROJECTS}. */
  readonly projects: number;
  readonly kinds: readonly FaultKind[];
}

/** One part to simulate, from the first of consecutive seeds. */
export interface PartFromSeed {
  readonly part: Part;
  readonly seed: number;
  readonly print: (line: string) => void;
}

export const MAX_PROJECTS = 20;

/** Returns the run of a seed with all kinds of faults that its part can have. */
export function wholeScenario(
  part: Part,
  seed: number,
  { hours, projects }: Pick<Scenario, 'hours' | 'projects'>,
): Scenario {
  // A real server cannot lose what it has stored.
  const kinds = FAULT_KINDS.filter((kind) => part !== 'server' || kind !== 'failover');
  return { part, seed, hours, projects, kinds };
}
