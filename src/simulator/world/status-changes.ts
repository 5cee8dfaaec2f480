import type { Random } from '../random.ts';

/** How lively a world is. Probabilities are per prompt and step unless said otherwise. */
export interface Rates {
  /** PENDING to RUNNING. */
  readonly start: number;
  /** RUNNING to COMPLETED or FAILED. */
  readonly finish: number;
  /** Share of the finished that fail. */
  readonly fail: number;
  /** COMPLETED or FAILED to PENDING or RUNNING. */
  readonly rerun: number;
  /** Share of the started that stay RUNNING for ever; never more than a twentieth of all prompts. */
  readonly stick: number;
  /** New prompts per project and step; as many are removed, so that a project keeps its size. */
  readonly arrivals: number;
  /** Share of the arrivals that are removed prompts coming back. */
  readonly comeBack: number;
  /** A dataset takes its next status. */
  readonly dataset: number;
}

/** Lively enough to watch, at one step a second. */
export const DEFAULT_RATES: Rates = {
  start: 0.15,
  finish: 0.1,
  fail: 0.2,
  rerun: 0.02,
  stick: 0.03,
  arrivals: 0.1,
  comeBack: 0.3,
  dataset: 0.01,
};

/** What a world begins with. */
const INITIAL_STATUSES = [
  'PENDING',
  'PENDING',
  'RUNNING',
  'RUNNING',
  'COMPLETED',
  'COMPLETED',
  'COMPLETED',
  'FAILED',
] as const;

/** Most are born waiting; some were quicker than any poll. */
const ARRIVAL_STATUSES = [
  'PENDING',
  'PENDING',
  'PENDING',
  'RUNNING',
  'COMPLETED',
  'FAILED',
] as const;

export function initialStatus(random: Random): string {
  return random.pick(INITIAL_STATUSES);
}

export function arrivalStatus(random: Random): string {
  return random.pick(ARRIVAL_STATUSES);
}

/** The statuses of the Evaluation Service. */
export const SERVICE_STATUSES = ['PENDING', 'RUNNING', 'COMPLETED', 'FAILED'] as const;
type ServiceStatus = (typeof SERVICE_STATUSES)[number];

type Next = (random: Random, rates: Rates) => ServiceStatus | undefined;

const rerun: Next = (random, rates) =>
  random.chance(rates.rerun) ? random.pick(['PENDING', 'RUNNING']) : undefined;

const NEXT: Readonly<Record<ServiceStatus, Next>> = {
  PENDING: (random, rates) => (random.chance(rates.start) ? 'RUNNING' : undefined),
  RUNNING: (random, rates) => {
    if (!random.chance(rates.finish)) return undefined;
    return random.chance(rates.fail) ? 'FAILED' : 'COMPLETED';
  },
  COMPLETED: rerun,
  FAILED: rerun,
};

/** Returns the status after this step; undefined if the record stays, as one with any other text does. */
export function nextStatus(status: string, random: Random, rates: Rates): string | undefined {
  const known = SERVICE_STATUSES.find((each) => each === status);
  return known && NEXT[known](random, rates);
}

/** Datasets go round, and now and then one fails; one without a status has none for ever. */
export function nextDatasetStatus(
  status: string | undefined,
  random: Random,
  rates: Rates,
): string | undefined {
  if (status === undefined || !random.chance(rates.dataset)) return undefined;
  return nextStatus(status, random, { ...rates, start: 1, finish: 1, rerun: 1 });
}
