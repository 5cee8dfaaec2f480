import { findPython, measure, type Scenario } from './measure.ts';
import type { Goal, Row, RowOptions } from './report.ts';
import { ONE_LISTING, type Workload } from './workload.ts';

/** Maximum block of the event loop, so that a scrape is never late. */
const BLOCK: Goal = { metric: 'blockMs', most: 15 };
const SCRAPE_GOALS: readonly Goal[] = [
  { metric: 'cpuMs', of: 'evalwatch scrape', over: 'join', most: 4 },
  { metric: 'blockMs', of: 'evalwatch scrape', most: 15 },
];
const PROJECT_COUNTS = [100, 300, 1000];
const PROMPTS_OF_EACH = 100;
/** Also measured in gzip; one size is enough, as gzip costs the same per byte. */
const ZIPPED = 10_000;
const SCRAPES = 6;

/** Rows in which each contender is measured in processes of its own, against the same service. */
export const POLLS: readonly Row[] = [
  row({
    name: 'etag',
    title: 'an unchanged listing, the service sends an ETag',
    contenders: ['not modified', 'evalwatch'],
    goals: [{ metric: 'cpuMs', over: 'not modified', most: 1.6 }, BLOCK],
    scenarios: ({ sizes }) => sizes.map((prompts) => steady({ prompts, sendsEtag: true }, 300)),
  }),
  row({
    name: 'unchanged',
    title: 'an unchanged listing, no ETag',
    contenders: ['download', 'sha256', 'parse', 'evalwatch', 'node', 'python'],
    goals: [{ metric: 'cpuMs', over: 'sha256', most: 0.6 }, BLOCK],
    scenarios: ({ sizes }) => listings(sizes).map((each) => steady(each, rounds(each.prompts))),
  }),
  row({
    name: 'changed',
    title: '1 % of the prompts changed',
    contenders: ['download', 'parse', 'evalwatch', 'node', 'python'],
    goals: [{ metric: 'cpuMs', over: 'parse', most: 0.7 }, BLOCK],
    scenarios: ({ sizes }) =>
      listings(sizes).map((each) => changing(steady(each, rounds(each.prompts)))),
  }),
  row({
    name: 'first',
    title: 'the first listing, into an empty store',
    contenders: ['download', 'parse', 'insert', 'evalwatch', 'node', 'python'],
    goals: [{ metric: 'cpuMs', over: 'node', most: 1.2 }, BLOCK],
    scenarios: ({ sizes }) =>
      listings(sizes).map((each) => ({
        ...steady(each, Math.min(20, rounds(each.prompts))),
        fresh: true,
      })),
  }),
  row({
    name: 'many',
    title: 'many projects, all polled once, unchanged',
    contenders: ['download', 'evalwatch', 'node', 'python'],
    goals: [{ metric: 'cpuMs', over: 'node', most: 0.4 }, BLOCK],
    scenarios: () => PROJECT_COUNTS.map(many),
  }),
  row({
    name: 'many-first',
    title: 'many projects, all polled for the first time',
    contenders: ['download', 'evalwatch', 'node', 'python'],
    goals: [{ metric: 'cpuMs', over: 'node', most: 1.2 }, BLOCK],
    scenarios: () => PROJECT_COUNTS.map((projects) => ({ ...many(projects), fresh: true })),
  }),
  row({
    name: 'scrape',
    title: 'a scrape, every project polled since the last one',
    contenders: ['join', 'evalwatch scrape'],
    goals: SCRAPE_GOALS,
    scenarios: () => [steady({ projects: 1000 }, SCRAPES)],
  }),
  row({
    name: 'scrape-changed',
    title: 'a scrape, a prompt of every project changed since the last one',
    contenders: ['join', 'evalwatch scrape'],
    goals: SCRAPE_GOALS,
    scenarios: () => [changing(steady({ projects: 1000 }, SCRAPES))],
  }),
];

interface PollRow extends Omit<Row, 'measure'> {
  readonly contenders: readonly string[];
  readonly scenarios: (options: RowOptions) => readonly Scenario[];
}

function row({ contenders, scenarios, ...facts }: PollRow): Row {
  return {
    ...facts,
    measure: async function* (options) {
      const present = contenders.filter((name) => name !== 'python' || findPython());
      for (const scenario of scenarios(options)) {
        const runs = await measure(scenario, present, options);
        yield { size: sizeOf(scenario.workload), runs };
      }
    },
  };
}

/** Returns a scenario with one client and store for all rounds, after a warm-up. */
function steady(listing: Partial<Workload>, polls: number): Scenario {
  const workload = { ...ONE_LISTING, ...listing };
  return { workload, warmUp: Math.ceil(polls / 2), polls, fresh: false };
}

/** Gives each round another version. */
function changing(scenario: Scenario): Scenario {
  const versions = scenario.warmUp + scenario.polls;
  return { ...scenario, workload: { ...scenario.workload, versions } };
}

function many(projects: number): Scenario {
  return steady({ projects, prompts: PROMPTS_OF_EACH }, rounds(projects * PROMPTS_OF_EACH));
}

function listings(sizes: readonly number[]): readonly Pick<Workload, 'prompts' | 'encoding'>[] {
  const inGzip = sizes.filter((prompts) => prompts === ZIPPED);
  return [
    ...sizes.map((prompts) => ({ prompts, encoding: 'identity' as const })),
    ...inGzip.map((prompts) => ({ prompts, encoding: 'gzip' as const })),
  ];
}

/** Returns enough rounds for steady figures in short runs. */
function rounds(prompts: number): number {
  return Math.max(5, Math.min(100, Math.round(300_000 / prompts)));
}

function sizeOf({ projects, prompts, encoding }: Workload): string {
  const counts = [
    ...(projects === 1 ? [] : [`${projects.toLocaleString('en')} projects`]),
    `${prompts.toLocaleString('en')} prompts`,
  ];
  return counts.join(' × ') + (encoding === 'identity' ? '' : `, ${encoding}`);
}
