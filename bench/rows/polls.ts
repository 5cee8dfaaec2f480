import type { ContenderName } from '../contenders/contenders.ts';
import { measure, type Scenario } from '../measure.ts';
import type { Goal } from '../result.ts';
import type { Workload } from '../workload.ts';
import type { Row, RowOptions } from './row.ts';

/** Maximum block of the event loop, so that a scrape is never late. */
const BLOCK: Goal = { metric: 'blockMs', most: 15 };
const PROJECT_COUNTS = [100, 300, 1000];
const PROMPTS_OF_EACH = 100;
/** Also measured in gzip; one size is enough, as gzip costs the same per byte. */
const ZIPPED = 10_000;

export const POLL_ROWS: readonly Row[] = [
  row({
    name: 'etag',
    title: 'an unchanged listing, the service sends an ETag',
    contenders: ['not modified', 'evalwatch'],
    goals: [{ metric: 'cpuMs', over: 'not modified', most: 1.6 }, BLOCK],
    scenarios: ({ sizes }) => sizes.map((prompts) => steady({ prompts, etag: true }, 300)),
  }),
  row({
    name: 'unchanged',
    title: 'an unchanged listing, no ETag',
    contenders: ['download', 'sha256', 'parse', 'evalwatch', 'node', 'python'],
    goals: [{ metric: 'cpuMs', over: 'sha256', most: 0.5 }, BLOCK],
    scenarios: ({ sizes }) =>
      listings(sizes).map((listing) => steady(listing, rounds(listing.prompts))),
  }),
  row({
    name: 'changed',
    title: '1 % of the prompts changed',
    contenders: ['download', 'parse', 'evalwatch', 'node', 'python'],
    goals: [{ metric: 'cpuMs', over: 'parse', most: 0.5 }, BLOCK],
    scenarios: ({ sizes }) =>
      listings(sizes).map((listing) => changing(steady(listing, rounds(listing.prompts)))),
  }),
  row({
    name: 'first',
    title: 'the first listing, into an empty store',
    contenders: ['download', 'parse', 'insert', 'evalwatch', 'node', 'python'],
    goals: [{ metric: 'cpuMs', over: 'insert', most: 1.6 }, BLOCK],
    scenarios: ({ sizes }) =>
      listings(sizes).map((listing) => ({
        ...steady(listing, Math.min(20, rounds(listing.prompts))),
        fresh: true,
      })),
  }),
  row({
    name: 'many',
    title: 'many projects, all polled once, unchanged',
    contenders: ['download', 'evalwatch', 'node', 'python'],
    goals: [{ metric: 'cpuMs', over: 'download', most: 1.8 }, BLOCK],
    scenarios: () => PROJECT_COUNTS.map(many),
  }),
  row({
    name: 'many-first',
    title: 'many projects, all polled for the first time',
    contenders: ['download', 'evalwatch', 'node', 'python'],
    goals: [{ metric: 'cpuMs', over: 'node', most: 0.7 }, BLOCK],
    scenarios: () => PROJECT_COUNTS.map((projects) => ({ ...many(projects), fresh: true })),
  }),
];

interface PollRow extends Pick<Row, 'name' | 'title' | 'goals'> {
  readonly contenders: readonly ContenderName[];
  readonly scenarios: (options: RowOptions) => readonly Scenario[];
}

/** Creates a row that measures each contender in a process of its own. */
export function row({ contenders, scenarios, ...facts }: PollRow): Row {
  return {
    ...facts,
    measure: async function* (options) {
      const present = contenders.filter((name) => name !== 'python' || options.python);
      for (const scenario of scenarios(options)) {
        const { projects, prompts, encoding } = scenario.workload;
        const figures = await measure(scenario, present, options);
        yield { projects, prompts, encoding, figures };
      }
    },
  };
}

/** Returns a scenario with one client and store for all rounds, after a warm-up. */
export function steady(
  listing: Partial<Workload> & Pick<Workload, 'prompts'>,
  polls: number,
): Scenario {
  return {
    workload: { projects: 1, versions: 1, encoding: 'identity', etag: false, ...listing },
    warmUp: Math.ceil(polls / 2),
    polls,
    fresh: false,
  };
}

/** Gives each round another version. */
export function changing(scenario: Scenario): Scenario {
  const versions = scenario.warmUp + scenario.polls;
  return { ...scenario, workload: { ...scenario.workload, versions } };
}

function many(projects: number): Scenario {
  return steady({ projects, prompts: PROMPTS_OF_EACH }, rounds(projects * PROMPTS_OF_EACH));
}

function listings(sizes: readonly number[]) {
  const inGzip = sizes.filter((prompts) => prompts === ZIPPED);
  return [
    ...sizes.map((prompts) => ({ prompts, encoding: 'identity' }) as const),
    ...inGzip.map((prompts) => ({ prompts, encoding: 'gzip' }) as const),
  ];
}

/** Returns enough rounds for steady figures in short runs. */
function rounds(prompts: number): number {
  return Math.max(5, Math.min(100, Math.round(300_000 / prompts)));
}
