import type { Part } from './distribution.ts';

/** A period in which a fleet changes, and the false alarms of a project that are allowed in it. */
interface Change {
  readonly firstDay: number;
  /** Last day of the period. */
  readonly lastDay: number;
  readonly maxFalseAlarms: number;
}

/** A project's prompts over 90 days. */
export interface Fleet {
  readonly name: string;
  /** Prompts a day with which the fleet is simulated. */
  readonly rates: readonly number[];
  /** Returns the classes of the prompts on a day; `random` may draw the day's scale. */
  readonly partsOn: (day: number, median: number, random: () => number) => readonly Part[];
  /** Returns the distribution of a day's durations over all scales, if each day's scale is drawn. */
  readonly regimeOn?: (day: number, median: number) => readonly Part[];
  /** Number of prompts on a day; by default the rate. */
  readonly promptsOn?: (day: number, rate: number) => number;
  /** Whether half of the day's prompts hang for 4 to 12 hours. */
  readonly hangsOn?: (day: number) => boolean;
  readonly change?: Change;
  /** Longest typical duration with which the fleet is simulated, ms. */
  readonly maxMedian?: number;
}

const RATES = [5, 20, 100, 1000, 5000];
const STEP_DAY = 45;
const DRIFT_DAY = 40;
const DAYS_OF_DRIFT = 7;

/** Every fleet of the proof. Each is held to the bars of docs/reliability.md#learned-limits-limits. */
export const FLEETS: readonly Fleet[] = [
  ...[0.3, 0.6, 1, 1.5].map((sigma) => stationary(`lognormal ${sigma}`, [{ sigma }])),
  stationary('two modes, half each', [
    { share: 0.5, sigma: 0.3 },
    { share: 0.5, factor: 10, sigma: 0.3 },
  ]),
  stationary('two modes, 9 to 1', [
    { share: 0.9, sigma: 0.6 },
    { share: 0.1, factor: 10, sigma: 0.6 },
  ]),
  // At night prompts take three times as long and are a tenth of all.
  stationary('day and night', [
    { share: 0.9, sigma: 0.6 },
    { share: 0.1, factor: 3, sigma: 0.6 },
  ]),
  stationary('heavy tail', [{ alpha: 2 }]),
  drift('drift up', 0.6, 2),
  drift('drift up, wide', 1, 2),
  drift('drift down', 0.6, 0.5),
  step('four times as long', 0.6),
  step('four times as long, wide', 1),
  hung('hung days 0.3', 0.3, 120_000),
  hung('hung days 0.6', 0.6, 120_000),
  hung('hung days 1', 1, 20_000),
  {
    ...stationary('no weekends', [{ sigma: 1 }]),
    promptsOn: (day, rate) => (day % 7 < 5 ? rate : 0),
  },
  {
    name: 'days of their own',
    rates: RATES,
    partsOn: (_day, median, random) => {
      const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
      return [{ share: 1, median: median * Math.exp(0.3 * normal), sigma: 0.6 }];
    },
    regimeOn: (_day, median) => [{ share: 1, median, sigma: Math.hypot(0.6, 0.3) }],
  },
  {
    ...stationary('from 5 to 500 a day', [{ sigma: 1 }]),
    rates: [500],
    promptsOn: (day, rate) => Math.round((rate / 100) * 100 ** (day / 89)),
  },
  {
    // With fewer prompts a day, the long ones of 30 days look like those of two hung days.
    ...stationary('1 % twenty times', [
      { share: 0.99, sigma: 0.5 },
      { share: 0.01, factor: 20, sigma: 0.5 },
    ]),
    rates: [100, 1000, 5000],
  },
];

type Class = Omit<Part, 'share' | 'median'> & {
  readonly share?: number;
  readonly factor?: number;
};

function stationary(name: string, classes: readonly Class[]): Fleet {
  return { name, rates: RATES, partsOn: (_day, median) => partsOf(classes, median) };
}

function partsOf(classes: readonly Class[], scale: number): readonly Part[] {
  return classes.map(({ share = 1, factor = 1, ...shape }) => ({
    ...shape,
    share,
    median: scale * factor,
  }));
}

function drift(name: string, sigma: number, factor: number): Fleet {
  const lastDay = DRIFT_DAY + DAYS_OF_DRIFT - 1;
  return {
    name,
    rates: RATES,
    partsOn: (day, median) => {
      const passed = Math.min(Math.max((day - DRIFT_DAY + 1) / DAYS_OF_DRIFT, 0), 1);
      return [{ share: 1, median: median * factor ** passed, sigma }];
    },
    change: { firstDay: DRIFT_DAY, lastDay, maxFalseAlarms: 2 },
  };
}

function step(name: string, sigma: number): Fleet {
  return {
    name,
    rates: RATES,
    partsOn: (day, median) =>
      day < STEP_DAY
        ? [{ share: 1, median, sigma }]
        : [
            { share: 0.5, median, sigma },
            { share: 0.5, median: 4 * median, sigma },
          ],
    change: { firstDay: STEP_DAY, lastDay: STEP_DAY + 2, maxFalseAlarms: 5 },
  };
}

/** Returns a fleet whose healthy prompts take less than a third of the time of its hung ones. */
function hung(name: string, sigma: number, maxMedian: number): Fleet {
  return { ...stationary(name, [{ sigma }]), hangsOn, maxMedian };
}

/** Whether prompts hang: two days of any thirty, the first soon after the first limit is learned. */
function hangsOn(day: number): boolean {
  return day % 30 === 8 || day % 30 === 21;
}
