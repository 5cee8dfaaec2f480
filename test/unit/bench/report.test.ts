import { describe, expect, it } from 'vitest';
import { readOptions } from '../../../bench/options.ts';
import { documentOf, plotByPrompts } from '../../../bench/report/document.ts';
import { tableOf } from '../../../bench/report/table.ts';
import { verdictsOn } from '../../../bench/report/text.ts';
import type { Report, Result } from '../../../bench/result.ts';
import { growth, median } from '../../../bench/statistics.ts';

describe('statistics', () => {
  it.each([
    [[3], 3],
    [[9, 1, 2], 2],
    [[4, 1, 3, 2], 2.5],
  ])('the median of %j is %d', (values, middle) => {
    expect(median(values)).toBe(middle);
  });

  it.each([
    ['in proportion', (x: number) => 5 * x, 1],
    ['with the square', (x: number) => 0.1 * x * x, 2],
    ['not at all', () => 7, 0],
  ])('growth returns the exponent of a cost that grows %s', (_, cost, exponent) => {
    const points = [10, 100, 1000].map((x) => [x, cost(x)] as const);
    expect(growth(points)).toBeCloseTo(exponent, 10);
  });
});

function result(row: string, prompts: number, cpuMs: number, projects = 1): Result {
  return {
    row,
    title: `the title of ${row}`,
    projects,
    prompts,
    encoding: 'identity',
    goals: [
      { metric: 'cpuMs', over: 'parse', most: 0.5 },
      { metric: 'cpuMs', over: 'python', most: 0.5 },
      { metric: 'blockMs', most: 50 },
      { metric: 'restBytes', of: 'full', above: 'idle', most: 250e6 },
    ],
    figures: {
      parse: { cpuMs: 100 },
      evalwatch: { cpuMs, wallMs: 90, blockMs: 51, peakBytes: 2e8 },
      idle: { restBytes: 80e6 },
      full: { restBytes: 300e6 },
    },
  };
}

const machine = {
  cpu: 'a processor',
  cores: 2,
  memoryBytes: 8 * 2 ** 30,
  kernel: '6.1',
  node: '24.0.0',
  sqlite: '3.50.0',
  load: 0.1,
};

it('verdictsOn compares the figures with the goals, and skips goals without figures', () => {
  expect(verdictsOn(result('changed', 1000, 40))).toStrictEqual([
    { met: true, what: 'CPU', reached: '0.40 × parse', goal: '≤ 0.50 × parse' },
    { met: false, what: 'longest block', reached: '51.0 ms', goal: '≤ 50.0 ms' },
    { met: true, what: 'memory, full', reached: '220 MB above idle', goal: '≤ 250 MB above idle' },
  ]);
});

it('tableOf prints the figures and the missed goals', () => {
  const table = tableOf(result('changed', 1000, 60));
  expect(table).toContain('changed: the title of changed; 1,000 prompts');
  expect(table).toMatch(/evalwatch +60\.0 +90\.0 +51\.0/);
  expect(table).toContain('MISSED: CPU 0.60 × parse, goal ≤ 0.50 × parse');
});

describe('the document', () => {
  const results = [
    ...['unchanged', 'changed', 'first'].flatMap((row) => [
      result(row, 1000, 10),
      result(row, 100_000, 1000),
    ]),
    ...['many', 'many-first'].flatMap((row) => [
      result(row, 100, 10, 100),
      result(row, 100, 100, 1000),
    ]),
  ];
  const now: Report = { machine, runs: 3, results };
  const before: Report = { machine, runs: 3, results: [result('changed', 100_000, 4000)] };

  it('compares the largest size with its goal, before and now', async () => {
    const text = await documentOf(now, before);
    expect(text).toContain(
      '| `changed`: the title of changed; 100,000 prompts | CPU | ≤ 0.50 × parse | 40.0 × parse | **10.0 × parse, missed** |',
    );
    expect(text).toContain('a processor, 2 cores, 8 GiB');
    expect(text).not.toMatch(/\{\{|undefined|NaN/);
  });

  it('has a plot with a line of evalwatch for each row, in both themes', () => {
    const svg = plotByPrompts(now);
    expect(svg.match(/<g class="line evalwatch"><path d="M[\d.]+ [\d.]+L/g)).toHaveLength(3);
    expect(svg).toContain('prefers-color-scheme:dark');
    expect(svg).not.toMatch(/undefined|NaN|Infinity/);
  });
});

describe('the command line', () => {
  it('selects every row and size by default, or those that it names', () => {
    const { rows, sizes, runs } = readOptions([]);
    expect(rows).toContain('memory');
    expect(sizes).toStrictEqual([1000, 10_000, 100_000]);
    expect(runs).toBe(5);
    expect(readOptions(['etag', '--n', '10,20'])).toMatchObject({
      rows: ['etag'],
      sizes: [10, 20],
    });
  });

  it.each([
    [['etags'], 'there is no row etags'],
    [['--n', '10,x'], '--n needs a number greater than 0, not x'],
    [['--runs', '0'], '--runs needs a number greater than 0, not 0'],
    [['etag', '--write-docs'], '--write-docs needs every row'],
    [['--fast'], "Unknown option '--fast'"],
  ])('refuses %j', (args, message) => {
    expect(() => readOptions(args)).toThrow(message);
  });
});
