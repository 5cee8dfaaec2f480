import { join } from 'node:path';
import type * as DurationsRoom from '../../src/domain/durations.ts';
import type * as ExpectationRoom from '../../src/domain/expectation.ts';
import type * as LearnedLimitRoom from '../../src/domain/learned-limit.ts';
import type { DurationCount } from '../../src/domain/durations.ts';
import { randomNumbers } from '../random.ts';
import { drawDuration, quantileOf, type Part } from './distribution.ts';
import type { Fleet } from './fleets.ts';

/** The modules of src/domain that learn limits. */
export type Learning = typeof DurationsRoom & typeof ExpectationRoom & typeof LearnedLimitRoom;

export const INTERVAL_MS = 30_000;
export const DAY_MS = 24 * 60 * 60 * 1000;
const DAYS = 90;
/** The bars for detection hold from this day on, the first one being day 0. */
const FIRST_JUDGED_DAY = 14;
/** Time for which a limit is exceeded before the alert fires, with the poll that shows it. */
const ALERT_MS = 10 * 60_000 + INTERVAL_MS;
const FIRST_DAY = 20_000;

/** Results of one project of a fleet. */
export interface Outcome {
  /** Days with a learned limit, without those of the fleet's change. */
  days: number;
  /** Healthy prompts that took longer than the learned limit on these days. */
  falseAlarms: number;
  /** Those of them that exceeded the limit for the alert's own 10 minutes. */
  firedAlarms: number;
  /** Healthy prompts that took longer than the limit during the fleet's change. */
  changeAlarms: number;
  /** Time until the alert for a hung prompt, divided by the ideal one, of each judged day. */
  detection: number[];
  /** Whether the cap stops the limit short of the ideal one. */
  capped: boolean;
}

export async function loadLearning(source: string): Promise<Learning> {
  return {
    ...((await import(join(source, 'domain/durations.ts'))) as typeof DurationsRoom),
    ...((await import(join(source, 'domain/learned-limit.ts'))) as typeof LearnedLimitRoom),
    ...((await import(join(source, 'domain/expectation.ts'))) as typeof ExpectationRoom),
  };
}

/** Simulates one project for 90 days as polls see it. Keeps counts only, so memory does not depend on the rate. */
export function simulate(
  learning: Learning,
  fleet: Fleet,
  { rate, median, seed }: { readonly rate: number; readonly median: number; readonly seed: number },
): Outcome {
  const random = randomNumbers(seed);
  const cap = 12 * learning.DEFAULT_LIMIT_MS.RUNNING;
  const outcome: Outcome = {
    days: 0,
    falseAlarms: 0,
    firedAlarms: 0,
    changeAlarms: 0,
    detection: [],
    capped: false,
  };
  const ideals: number[] = [];
  let known: DurationCount[] = [];
  for (let day = 0; day < DAYS; day += 1) {
    const now = (FIRST_DAY + day) * DAY_MS;
    const { limitMs = 0, source } = limitAt(learning, known, now);
    const parts = fleet.partsOn(day, median, random);
    const prompts = fleet.promptsOn?.(day, rate) ?? rate;
    const today = countDay(learning, { fleet, day, parts, prompts, limitMs, random });

    if (day >= FIRST_JUDGED_DAY) {
      const ideal = Math.max(...ideals.slice(-learning.LEARNED_DAYS));
      if (ideal > cap) outcome.capped = true;
      outcome.detection.push((limitMs + ALERT_MS) / (ideal + ALERT_MS));
    }
    ideals.push(idealLimit(fleet.regimeOn?.(day, median) ?? parts, prompts));
    if (source === 'learned') {
      const { change } = fleet;
      if (change !== undefined && day >= change.firstDay && day <= change.lastDay) {
        outcome.changeAlarms += today.overLimit;
      } else {
        outcome.days += 1;
        outcome.falseAlarms += today.overLimit;
        outcome.firedAlarms += today.fired;
      }
    }
    known = known.filter((count) => count.day >= FIRST_DAY + day - learning.LEARNED_DAYS);
    for (const [bucket, count] of today.counts) {
      known.push({ day: FIRST_DAY + day, bucket, count });
    }
    if (limitAt(learning, known, now + DAY_MS - 1).limitMs !== limitMs) {
      throw new Error(`${fleet.name}: the limit of day ${day} depends on durations of this day`);
    }
  }
  return outcome;
}

function limitAt(
  { expectationOf, learn }: Learning,
  counts: readonly DurationCount[],
  now: number,
): ExpectationRoom.StateExpectation {
  const context = { status: 'RUNNING', now, maxIntervalMs: INTERVAL_MS } as const;
  return expectationOf('auto', learn(counts, context));
}

/** Returns the ideal limit of a distribution as polls see it, ms. */
function idealLimit(parts: readonly Part[], prompts: number): number {
  const polled = (ms: number): number => Math.ceil(ms / INTERVAL_MS) * INTERVAL_MS;
  const p99 = polled(quantileOf(parts, 0.99));
  const once = prompts === 0 ? 0 : polled(quantileOf(parts, 1 - 1 / (30 * prompts)));
  return Math.max(3 * p99, 2 * once, 5 * 60_000, 2 * INTERVAL_MS + 60_000);
}

interface SimulatedDay {
  readonly fleet: Fleet;
  readonly day: number;
  readonly parts: readonly Part[];
  readonly prompts: number;
  readonly limitMs: number;
  readonly random: () => number;
}

function countDay(
  { bucketOf }: Learning,
  { fleet, day, parts, prompts, limitMs, random }: SimulatedDay,
): { overLimit: number; fired: number; counts: Map<number, number> } {
  const hangs = fleet.hangsOn?.(day) === true;
  const result = { overLimit: 0, fired: 0, counts: new Map<number, number>() };
  for (let prompt = 0; prompt < prompts; prompt += 1) {
    const isHung = hangs && prompt % 2 === 0;
    const ms = isHung ? (4 + 8 * random()) * 60 * 60_000 : drawDuration(parts, random);
    // The poll that finds the status and the one that finds the next one are whole intervals apart.
    const seen = Math.floor(ms / INTERVAL_MS + random()) * INTERVAL_MS;
    // No poll found the status.
    if (seen === 0) continue;
    const bucket = bucketOf(seen);
    result.counts.set(bucket, (result.counts.get(bucket) ?? 0) + 1);
    if (isHung || seen <= limitMs) continue;
    result.overLimit += 1;
    if (seen > limitMs + ALERT_MS - INTERVAL_MS) result.fired += 1;
  }
  return result;
}
