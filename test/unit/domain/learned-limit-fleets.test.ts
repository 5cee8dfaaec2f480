import { describe, expect, it } from 'vitest';
import { randomNumbers } from '../../../proof/random.ts';
import {
  bucketOf,
  type DurationCount,
  expectationOf,
  learn,
  LEARNED_DAYS,
} from '../../../src/domain/limits.ts';

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const INTERVAL = MINUTE / 2;
const MEDIAN = 2 * MINUTE;
const DAYS = 90;
const FIRST_DAY = 20_000;
/** The bars for detection hold from this day on. */
const FIRST_JUDGED_DAY = 14;
/** Time for which a limit is exceeded before the alert fires, with the poll that shows it. */
const ALERT = 10 * MINUTE + INTERVAL;
const PROJECTS = 5;

/** Durations of one class of prompts: lognormal (`sigma`), or Pareto (`alpha`). */
interface Class {
  /** Share of the prompts. */
  readonly share?: number;
  /** Median, as a factor of that of the fleet. */
  readonly factor?: number;
  readonly sigma?: number;
  readonly alpha?: number;
}

/** A project's prompts over 90 days. */
interface Fleet {
  /** Prompts a day. */
  readonly rate: number;
  readonly classesOn: (day: number) => readonly Class[];
  /** Whether half of the day's prompts hang for 4 to 12 hours. */
  readonly hangsOn?: (day: number) => boolean;
  /** Days in which the fleet changes, and the false alarms that are allowed in them. */
  readonly change?: { readonly from: number; readonly to: number; readonly maxFalseAlarms: number };
}

const always = (...classes: readonly Class[]) => ({ classesOn: () => classes });
/** Two days of any thirty, the first soon after the first limit is learned. */
const hangsOn = (day: number) => day % 30 === 8 || day % 30 === 21;
const driftAt = (day: number) => 2 ** (Math.min(Math.max(day - 39, 0), 7) / 7);

const FLEETS: Readonly<Record<string, Fleet>> = {
  'alike, few': { rate: 5, ...always({ sigma: 0.3 }) },
  'alike, many, and longer': { rate: 1000, ...always({ factor: 10, sigma: 0.3 }) },
  different: { rate: 100, ...always({ sigma: 1 }) },
  'in two modes': {
    rate: 100,
    ...always({ share: 0.9, sigma: 0.6 }, { share: 0.1, factor: 10, sigma: 0.6 }),
  },
  'with a heavy tail': { rate: 1000, ...always({ alpha: 2 }) },
  'alike, some hung': { rate: 100, ...always({ sigma: 0.3 }), hangsOn },
  'different, some hung': { rate: 100, ...always({ sigma: 0.8 }), hangsOn },
  'that come to take twice as long in a week': {
    rate: 100,
    classesOn: (day) => [{ factor: driftAt(day), sigma: 0.6 }],
    change: { from: 40, to: 46, maxFalseAlarms: 2 },
  },
  'half of which take four times as long from a day on': {
    rate: 100,
    classesOn: (day) =>
      day < 45
        ? [{ sigma: 0.6 }]
        : [
            { share: 0.5, sigma: 0.6 },
            { share: 0.5, factor: 4, sigma: 0.6 },
          ],
    change: { from: 45, to: 47, maxFalseAlarms: 5 },
  },
};

/** Draws the duration of a prompt, ms. */
function draw(classes: readonly Class[], random: () => number): number {
  let choice = random();
  const drawn = classes.find(({ share = 1 }) => (choice -= share) <= 0) ?? classes[0];
  const { factor = 1, sigma = 1, alpha } = drawn ?? {};
  const uniform = 1 - random();
  if (alpha !== undefined) return MEDIAN * factor * (2 * uniform) ** (-1 / alpha);
  const normal = Math.sqrt(-2 * Math.log(uniform)) * Math.cos(2 * Math.PI * random());
  return MEDIAN * factor * Math.exp(sigma * normal);
}

/** Returns the duration that one prompt in `one / share` exceeds, ms, as polls see it. */
function exceededBy(share: number, classes: readonly Class[]): number {
  let [low, high] = [1, 1e15];
  while (high / low > 1.0001) {
    const middle = Math.sqrt(low * high);
    const above = classes.reduce(
      (sum, each) => sum + (each.share ?? 1) * shareAbove(each, middle),
      0,
    );
    if (above > share) low = middle;
    else high = middle;
  }
  return Math.ceil(high / INTERVAL) * INTERVAL;
}

function shareAbove({ factor = 1, sigma = 1, alpha }: Class, ms: number): number {
  const median = MEDIAN * factor;
  if (alpha !== undefined) return Math.min(1, 0.5 * (median / ms) ** alpha);
  const z = Math.log(ms / median) / sigma;
  // The normal distribution's tail by erfcc of Numerical Recipes, with an error below 1e-6.
  const x = Math.abs(z) / Math.SQRT2;
  const t = 1 / (1 + x / 2);
  const terms = [
    -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398,
    1.48851587, -0.82215223, 0.17087277,
  ];
  const tail = (t * Math.exp(-x * x + terms.reduceRight((sum, term) => sum * t + term, 0))) / 2;
  return z < 0 ? 1 - tail : tail;
}

/** Simulates a project as polls see it. */
function simulate({ rate, classesOn, hangsOn: hangs, change }: Fleet, random: () => number) {
  const outcome = { days: 0, falseAlarms: 0, changeAlarms: 0, ratios: [] as number[] };
  const ideals: number[] = [];
  let known: DurationCount[] = [];
  const limitAt = (now: number) =>
    expectationOf('auto', learn(known, { status: 'RUNNING', now, maxIntervalMs: INTERVAL }));
  for (let day = 0; day < DAYS; day += 1) {
    const { limitMs = 0, source } = limitAt((FIRST_DAY + day) * DAY);
    const classes = classesOn(day);
    const counts = new Map<number, number>();
    let overLimit = 0;
    for (let prompt = 0; prompt < rate; prompt += 1) {
      const isHung = hangs?.(day) === true && prompt % 2 === 0;
      const ms = isHung ? (4 + 8 * random()) * 60 * MINUTE : draw(classes, random);
      // The poll that finds the status and the one that finds the next one are whole intervals apart.
      const seen = Math.floor(ms / INTERVAL + random()) * INTERVAL;
      if (seen === 0) continue;
      counts.set(bucketOf(seen), (counts.get(bucketOf(seen)) ?? 0) + 1);
      if (!isHung && seen > limitMs) overLimit += 1;
    }
    if (day >= FIRST_JUDGED_DAY) {
      const ideal = Math.max(...ideals.slice(-LEARNED_DAYS));
      outcome.ratios.push((limitMs + ALERT) / (ideal + ALERT));
    }
    // Three times the 99th percentile, or twice the duration that one healthy prompt exceeds in 30 days.
    const once = exceededBy(1 / (30 * rate), classes);
    ideals.push(Math.max(3 * exceededBy(0.01, classes), 2 * once, 5 * MINUTE));
    if (source === 'learned') {
      const isChange = change !== undefined && day >= change.from && day <= change.to;
      if (isChange) outcome.changeAlarms += overLimit;
      else {
        outcome.days += 1;
        outcome.falseAlarms += overLimit;
      }
    }
    known = known.filter((count) => count.day >= FIRST_DAY + day - LEARNED_DAYS);
    for (const [bucket, count] of counts) known.push({ day: FIRST_DAY + day, bucket, count });
  }
  return outcome;
}

describe('the learned limit of prompts', () => {
  it.each(Object.entries(FLEETS))('%s', (_, fleet) => {
    const projects = Array.from({ length: PROJECTS }, (_each, n) =>
      simulate(fleet, randomNumbers(n + 1)),
    );
    const sum = (key: 'days' | 'falseAlarms' | 'changeAlarms') =>
      projects.reduce((total, outcome) => total + outcome[key], 0);
    const ratios = projects.flatMap((outcome) => outcome.ratios).toSorted((a, b) => a - b);
    const figures = {
      falseAlarmsIn30Days: (30 * sum('falseAlarms')) / sum('days'),
      changeAlarms: sum('changeAlarms') / PROJECTS,
      // Time until the alert for a hung prompt, as a ratio of that with the ideal limit.
      detection: ratios.reduce((total, ratio) => total + ratio, 0) / ratios.length,
      usualDetection: ratios[Math.floor(0.95 * ratios.length)],
    };
    expect(figures.falseAlarmsIn30Days).toBeLessThanOrEqual(1);
    expect(figures.changeAlarms).toBeLessThanOrEqual(fleet.change?.maxFalseAlarms ?? 0);
    expect(figures.detection).toBeLessThanOrEqual(1.25);
    expect(figures.usualDetection).toBeLessThanOrEqual(2);
  });
});
