import type { Random } from '../random.ts';

/** Rates of change: probabilities for each prompt and step, except where noted. */
export interface Rates {
  /** PENDING to RUNNING. */
  readonly start: number;
  /** RUNNING to COMPLETED or FAILED. */
  readonly finish: number;
  /** Share of finishing prompts that fail. */
  readonly fail: number;
  /** COMPLETED or FAILED to PENDING or RUNNING. */
  readonly rerun: number;
  /** Share of starting prompts that stay RUNNING for ever; at most a twentieth of all prompts. */
  readonly stick: number;
  /** Number of new prompts per project and step. As many are removed, so that a project keeps its size. */
  readonly arrivals: number;
  /** Share of new prompts that are removed ones coming back. */
  readonly comeBack: number;
  /** Change of a dataset to its next status. */
  readonly dataset: number;
}

/** At one step a second, something changes every few seconds. */
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

/** Statuses of the initial records, by frequency. */
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

/** Statuses of new prompts, by frequency. Most are PENDING; some finish before the next poll. */
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

/** Returns the status after this step; undefined if it stays. A status that the service does not document never changes. */
export function nextStatus(status: string, random: Random, rates: Rates): string | undefined {
  const known = SERVICE_STATUSES.find((each) => each === status);
  return known && NEXT[known](random, rates);
}

/** Returns the status of a dataset after this step; undefined if it stays. A dataset without a status never gets one. */
export function nextDatasetStatus(
  status: string | undefined,
  random: Random,
  rates: Rates,
): string | undefined {
  if (status === undefined || !random.chance(rates.dataset)) return undefined;
  return nextStatus(status, random, { ...rates, start: 1, finish: 1, rerun: 1 });
}
