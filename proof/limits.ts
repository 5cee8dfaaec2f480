import type { Fleet } from './limits/fleets.ts';
import { FLEETS } from './limits/fleets.ts';
import { loadLearning, simulate, type Learning, type Outcome } from './limits/simulate.ts';
import { type Bug, type Figures, type Row, SOURCE } from './row.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
/** Healthy prompts over the limit, per project and 30 days. */
const MAX_FALSE_ALARMS = 1;
const MAX_DETECTION = 1.25;
/** Detection ratio on 95 % of the days. */
const MAX_USUAL_DETECTION = 2;

interface Extent {
  readonly seeds: number;
  /** Median durations of a fleet's prompts, ms. */
  readonly medians: readonly number[];
  readonly rates: readonly number[];
  /** Factor of the bars for false alarms: a few months say little about their average. */
  readonly slack: number;
}

const TESTS: Extent = { seeds: 1, medians: [2 * MINUTE], rates: [100, 500], slack: 3 };
/** Enough to notice a deliberate mistake. */
const SHORT: Extent = {
  seeds: 2,
  medians: [20 * SECOND, 2 * MINUTE, 20 * MINUTE],
  rates: [5, 100, 500, 1000],
  slack: 3,
};
const LONG: Extent = {
  seeds: 10,
  medians: [20 * SECOND, 2 * MINUTE, 20 * MINUTE, 120 * MINUTE],
  rates: [5, 20, 100, 500, 1000, 5000],
  slack: 1,
};

const FILE = 'domain/learned-limit.ts';
const MISTAKES: readonly Bug[] = [
  {
    what: 'three times the 99th percentile alone',
    part: 'heavy tail',
    file: FILE,
    replace: [
      [
        'LIMIT_FACTOR * longestYet',
        '3 * middleOf(known.flatMap(({ bucket, count }) => Array<number>(count).fill(bucket))' +
          '.sort((a, b) => a - b)[Math.floor(0.99 * total(known))] ?? 0)',
      ],
    ],
    notice: /heavy tail, 1000 a day: .* false alarms/,
  },
  {
    what: 'the longest day instead of the third-longest',
    part: 'hung days 0.3',
    file: FILE,
    replace: [['const HUNG_DAYS = 2;', 'const HUNG_DAYS = 0;']],
    notice: /hung days 0.3, 100 a day: .* detection/,
  },
  {
    what: 'hung days count as usual ones',
    part: 'hung days 1',
    file: FILE,
    replace: [['const HUNG_FACTOR = 3;', 'const HUNG_FACTOR = 1e6;']],
    notice: /hung days 1, .* detection/,
  },
  {
    what: 'the durations of today count',
    part: 'lognormal 1',
    file: FILE,
    replace: [['day < today && day >= today', 'day <= today && day >= today']],
    notice: /depends on durations of this day/,
  },
  {
    what: 'no minimum of days',
    part: 'lognormal 1',
    file: FILE,
    replace: [
      ['const MIN_DAYS = 3;', 'const MIN_DAYS = 1;'],
      ['const MIN_AGE_DAYS = 7;', 'const MIN_AGE_DAYS = 1;'],
    ],
    notice: /lognormal 1, .* false alarms/,
  },
  {
    what: 'a bucket stands for a duration of a longer one',
    part: 'lognormal 0.3',
    file: 'domain/durations.ts',
    replace: [['(bucket - 0.5)', '(bucket + 1)']],
    notice: /lognormal 0.3, .* detection/,
  },
];

/**
 * Simulates fleets over 90 days: limits learned from the durations of healthy prompts raise few false alarms, and hung
 * prompts are detected in time.
 */
export const limits: Row = {
  name: 'limits',
  bug: MISTAKES,
  run: async ({ short, seed, print, source = SOURCE, part }) => {
    const size = source === SOURCE ? TESTS : SHORT;
    const extent = short ? size : LONG;
    const learning = await loadLearning(source);
    const cells: Cell[] = [];
    print(HEADER);
    for (const fleet of FLEETS) {
      if (part !== undefined && part !== fleet.name) continue;
      for (const rate of fleet.rates.filter((each) => extent.rates.includes(each))) {
        const cell = judgeCell(learning, { fleet, rate, seed, extent });
        cells.push(cell);
        print(toLine(cell));
        // Lets other work run between two cells.
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    const missed = cells.flatMap((cell) => missedBars(cell, extent));
    if (missed.length > 0) throw new Error(missed.join('\n'));
    return toFigures(cells, extent);
  },
};

/** Figures of one fleet with one number of prompts a day. */
interface Cell {
  readonly fleet: Fleet;
  readonly rate: number;
  /** Healthy prompts over the limit, per project and 30 days; undefined if all projects are capped. */
  readonly falseAlarms: number | undefined;
  /** Those that stayed over it for the alert's own 10 minutes. */
  readonly firedAlarms: number | undefined;
  /** Healthy prompts over the limit during the change, per project. */
  readonly changeAlarms: number | undefined;
  /** Average detection ratio, for the typical duration with the greatest one. */
  readonly detection: number;
  /** Ratio that 95 % of the days do not exceed, likewise. */
  readonly usualDetection: number;
}

interface CellOptions {
  readonly fleet: Fleet;
  readonly rate: number;
  readonly seed: number;
  readonly extent: Extent;
}

function judgeCell(learning: Learning, { fleet, rate, seed, extent }: CellOptions): Cell {
  const medians = extent.medians.filter((median) => median <= (fleet.maxMedian ?? Infinity));
  const outcomes = medians.map((median) =>
    Array.from({ length: extent.seeds }, (_, project) =>
      simulate(learning, fleet, { rate, median, seed: seed * 1_000_003 + project * 7919 + median }),
    ),
  );
  const free = outcomes.flat().filter(({ capped }) => !capped);
  const per30Days = (value: (outcome: Outcome) => number): number | undefined =>
    free.length === 0 ? undefined : (30 * sum(free, value)) / sum(free, ({ days }) => days);
  const ratios = outcomes.map((projects) =>
    projects.flatMap(({ detection }) => detection).toSorted((a, b) => a - b),
  );
  return {
    fleet,
    rate,
    falseAlarms: per30Days(({ falseAlarms }) => falseAlarms),
    firedAlarms: per30Days(({ firedAlarms }) => firedAlarms),
    changeAlarms:
      fleet.change && free.length > 0
        ? sum(free, ({ changeAlarms }) => changeAlarms) / free.length
        : undefined,
    detection: Math.max(...ratios.map((each) => sum(each, (ratio) => ratio) / each.length)),
    usualDetection: Math.max(...ratios.map((each) => each[Math.floor(0.95 * each.length)] ?? 0)),
  };
}

function missedBars(cell: Cell, { slack }: Extent): readonly string[] {
  const { fleet, rate, falseAlarms, changeAlarms, detection, usualDetection } = cell;
  const name = `${fleet.name}, ${rate} a day`;
  const missed: string[] = [];
  const check = (value: number | undefined, bar: number, of: string): void => {
    if (value !== undefined && !(value <= bar)) {
      missed.push(`${name}: ${value.toFixed(2)} ${of}, more than ${bar}`);
    }
  };
  check(falseAlarms, slack * MAX_FALSE_ALARMS, 'false alarms in 30 days');
  check(changeAlarms, slack * (fleet.change?.maxFalseAlarms ?? 0), 'false alarms in the change');
  check(detection, MAX_DETECTION, 'average of the detection ratio');
  check(usualDetection, MAX_USUAL_DETECTION, '95 % of days of the detection ratio');
  return missed;
}

const HEADER = [
  'fleet'.padEnd(26),
  'a day'.padStart(6),
  'false alarms in 30 days'.padStart(24),
  'for 10 min'.padStart(11),
  'in the change'.padStart(14),
  'detection'.padStart(10),
  '95 % of days'.padStart(13),
].join('');

function toLine(cell: Cell): string {
  const number = (value: number | undefined, width: number): string =>
    (value?.toFixed(2) ?? '').padStart(width);
  return [
    cell.fleet.name.padEnd(26),
    String(cell.rate).padStart(6),
    number(cell.falseAlarms, 24),
    number(cell.firedAlarms, 11),
    number(cell.changeAlarms, 14),
    number(cell.detection, 10),
    number(cell.usualDetection, 13),
  ].join('');
}

function toFigures(cells: readonly Cell[], { seeds, medians }: Extent): Figures {
  const greatest = (value: (cell: Cell) => number | undefined, among = cells): string => {
    const worst = among.toSorted((a, b) => (value(b) ?? 0) - (value(a) ?? 0))[0];
    if (worst === undefined) return 'none';
    return `${(value(worst) ?? 0).toFixed(2)}: ${worst.fleet.name}, ${worst.rate} a day`;
  };
  const changes = (bar: number): readonly Cell[] =>
    cells.filter(({ fleet }) => fleet.change?.maxFalseAlarms === bar);
  return [
    ['projects of 90 days, for each fleet and rate', String(seeds * medians.length)],
    ['most false alarms in 30 days', greatest(({ falseAlarms }) => falseAlarms)],
    ['… over the limit for 10 minutes', greatest(({ firedAlarms }) => firedAlarms)],
    ['… during a drift', greatest(({ changeAlarms }) => changeAlarms, changes(2))],
    [
      '… in the 3 days after four times as long',
      greatest(({ changeAlarms }) => changeAlarms, changes(5)),
    ],
    ['greatest detection ratio, average', greatest(({ detection }) => detection)],
    ['… on 95 % of days', greatest(({ usualDetection }) => usualDetection)],
  ];
}

function sum<Item>(items: readonly Item[], value: (item: Item) => number): number {
  return items.reduce((total, item) => total + value(item), 0);
}
