import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { debianTool } from '../test/support/debian-tool.ts';
import { firingsOf, OBJECTIVE } from './failure-traffic/rule-engine.ts';
import { trafficOf } from './failure-traffic/traffic.ts';
import { randomNumbers } from './random.ts';
import { type Bug, type Figures, required, type Row, SOURCE } from './row.ts';

const RULES = '../config/prometheus/evalwatch.rules.yml';
const CRITICAL = 'EvalwatchPromptFailureRatioHigh';
const WARNING = 'EvalwatchPromptFailureBudgetBurning';

const DAY = 1440;
/** Share of failures of a healthy project. */
const FAILING = OBJECTIVE / 2;

/** Numbers of prompts that finish in a day, and minutes within which an outage almost certainly has its 10th failure. */
const RATES = [
  { perDay: 20, patience: 1620 },
  { perDay: 100, patience: 330 },
  { perDay: 1000, patience: 45 },
  { perDay: 5000, patience: 45 },
] as const;

/** Maximum alerts of each kind in 100 healthy weeks, 25 at each rate. */
const MAX_CRITICAL = 1;
const MAX_WARNINGS = 5;
/** Share of the outages that must be reported in time. */
const ON_TIME = 0.95;
/** An outage is reported in this time, or at the 10th failure if that is later. */
const MINUTES = 30;
const FAILURES = 10;

interface Run {
  readonly promtool: string;
  readonly rules: string;
  readonly random: () => number;
  /** Projects at each rate. */
  readonly projects: number;
  readonly days: number;
  /** Minutes between two scrapes, and between two evaluations. */
  readonly step: number;
  readonly rates: readonly (typeof RATES)[number][];
  /** How many failures of a healthy project come together; 1 if each is independent of the others. */
  readonly bursts: readonly number[];
  readonly print: (line: string) => void;
}

const bug = (what: string, part: string, replace: Bug['replace'], notice: RegExp): Bug => ({
  what,
  file: RULES,
  part,
  replace,
  notice,
});

/**
 * Simulated failures are evaluated by promtool with the shipped rules: healthy projects raise hardly any alert, and
 * projects in which everything fails raise one in time.
 */
export const failureTraffic: Row = {
  name: 'failure-traffic',
  bug: [
    bug(
      '5 failures are an outage',
      'healthy',
      [
        [
          'and project:evalwatch_prompts_failed:excess1d >= 10',
          'and project:evalwatch_prompts_failed:excess1d >= 5',
        ],
        ['increase{window="1d"} >= 10', 'increase{window="1d"} >= 5'],
      ],
      /critical alerts in healthy weeks/,
    ),
    bug(
      'a share of failures is an outage',
      'healthy',
      [['            and project:evalwatch_prompts_failed:excess1d >= 10\n', '']],
      /critical alerts in healthy weeks/,
    ),
    bug(
      'the whole day is most recent',
      'outages',
      [['failed:ratio{window="30m"}', 'failed:ratio{window="1d"}']],
      /outages were reported in time/,
    ),
  ],
  run: async ({ short, seed, print, source = SOURCE, part }) => {
    const promtool = required('promtool', debianTool('prometheus', 'promtool'));
    const rules = await readFile(join(source, RULES), 'utf8');
    const run = { promtool, rules, print };
    // Healthy weeks and outages draw separate random numbers, so that each can run without the other.
    const [random, others] = [randomNumbers(seed), randomNumbers(seed)];
    const isTest = short && source === SOURCE;
    const healthy: Run = short
      ? {
          ...run,
          random,
          projects: 8,
          days: isTest ? 2 : 3,
          step: 5,
          rates: [RATES[1]],
          bursts: [3],
        }
      : { ...run, random, projects: 25, days: 7, step: 5, rates: RATES, bursts: [1, 3] };
    const outages: Run = short
      ? {
          ...run,
          random: others,
          projects: 6,
          days: 1,
          step: 5,
          rates: isTest ? [RATES[3]] : [RATES[1], RATES[3]],
          bursts: [1],
        }
      : { ...run, random: others, projects: 40, days: 1, step: 2, rates: RATES, bursts: [1] };
    return [
      ...(part === 'outages' ? [] : await runHealthy(healthy)),
      ...(part === 'healthy' ? [] : await runOutages(outages)),
    ];
  },
};

/** Runs projects that fail at half their objective. @throws if they raise more alerts than allowed */
async function runHealthy({
  random,
  projects,
  days,
  step,
  rates,
  bursts,
  print,
  ...run
}: Run): Promise<Figures> {
  const figures: [string, string][] = [];
  for (const burst of bursts) {
    const sums = { critical: 0, warnings: 0 };
    for (const { perDay } of rates) {
      const plan = { perDay, failing: FAILING, burst, minutes: days * DAY, step };
      const firings = await firingsOf(
        { ...run, alerts: [CRITICAL, WARNING], step },
        Array.from({ length: projects }, () => trafficOf(plan, random)),
      );
      const critical = sum(firings(CRITICAL).map(({ times }) => times));
      const warnings = sum(firings(WARNING).map(({ times }) => times));
      print(
        `healthy, ${perDay} a day, failures by ${burst}: ${critical} critical, ${warnings} warnings`,
      );
      sums.critical += critical;
      sums.warnings += warnings;
    }
    const weeks = (projects * rates.length * days) / 7;
    figures.push([
      `healthy weeks, failures by ${burst}: critical, warnings`,
      `${Math.round(weeks)}: ${sums.critical}, ${sums.warnings}`,
    ]);
    if (sums.critical > MAX_CRITICAL) {
      throw new Error(`${sums.critical} critical alerts in healthy weeks, failures by ${burst}`);
    }
    if (sums.warnings > MAX_WARNINGS) {
      throw new Error(`${sums.warnings} warnings in healthy weeks, failures by ${burst}`);
    }
  }
  return figures;
}

/** Runs healthy projects in which every prompt fails from a random minute on. @throws if too many are reported late */
async function runOutages({
  random,
  projects,
  days,
  step,
  rates,
  print,
  ...run
}: Run): Promise<Figures> {
  const figures: [string, string][] = [];
  for (const { perDay, patience } of rates) {
    const outages = Array.from({ length: projects }, () => {
      const outage = days * DAY + random() * 60;
      const minutes = days * DAY + 60 + patience;
      return {
        outage,
        traffic: trafficOf({ perDay, failing: FAILING, burst: 1, minutes, step, outage }, random),
      };
    });
    const firings = await firingsOf(
      { ...run, alerts: [CRITICAL], step },
      outages.map(({ traffic }) => traffic),
    );
    const delays = outages.map(({ outage, traffic }, index) => {
      const first = firings(CRITICAL)[index]?.first ?? Infinity;
      const before = traffic.failed[Math.floor(outage / step)] ?? 0;
      const tenth = traffic.failed.findIndex((failed) => failed >= before + FAILURES) * step;
      // The alert cannot fire before the scrape that shows the 10th failure.
      const due = Math.max(outage + MINUTES, tenth < 0 ? Infinity : tenth);
      return { minutes: first - outage, isOnTime: first < due + step && first > outage };
    });
    const inTime = delays.filter(({ isOnTime }) => isOnTime).length;
    const minutes = delays.map((delay) => delay.minutes).toSorted((a, b) => a - b);
    const text = `${inTime} of ${projects}, median ${Math.round(minutes[projects >> 1] ?? 0)} min`;
    print(`outages, ${perDay} a day: ${text}`);
    figures.push([`outages in time, ${perDay} a day`, text]);
    if (inTime < ON_TIME * projects) {
      throw new Error(`${inTime} of ${projects} outages were reported in time at ${perDay} a day`);
    }
  }
  return figures;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((a, b) => a + b, 0);
}
