import { configApplied } from '../../support/expected.ts';
import { describe, expect, it } from 'vitest';
import { NO_PROMPTS, type PromptCounts } from '../../../src/domain/experiment.ts';
import { transitionPairs, type Kind } from '../../../src/domain/status.ts';
import type {
  ExperimentRow,
  ProjectSnapshot,
  StoreSnapshot,
} from '../../../src/monitor/ports/store.ts';
import { NEVER_POLLED } from '../../../src/monitor/memory.ts';
import { START, listing, setUp, snapshotOf, stored, storeOf } from './setup.ts';

/** Scrapes the series of a store, whose projects all watch their datasets if `datasets` is set. */
async function scrapeStore(
  snapshot: StoreSnapshot,
  datasets = false,
): Promise<ReadonlyMap<string, number>> {
  const { metrics, scrape } = setUp({
    store: { snapshot: async () => snapshot, size: async () => ({ database: 1, wal: 1 }) },
  });
  const ids = snapshot.projects.map(({ project: id }) => id);
  metrics.observe(configApplied(ids, () => datasets));
  return await scrape();
}

function namesOf(series: ReadonlyMap<string, number>, name: string): string[] {
  return [...series.keys()].filter((key) => key === name || key.startsWith(`${name}{`));
}

const project = (fields: Parameters<typeof listing>[0], kind: Kind = 'prompt'): ProjectSnapshot =>
  stored('p', { listings: new Map([[kind, listing(fields)]]) });

describe('prompts', () => {
  it('are counted in all five statuses, including those at 0', async () => {
    const series = await scrapeStore(snapshotOf([project({ counts: new Map([['FAILED', 7]]) })]));
    expect(namesOf(series, 'evalwatch_prompts').map((name) => [name, series.get(name)])).toEqual([
      ['evalwatch_prompts{project="p",status="PENDING"}', 0],
      ['evalwatch_prompts{project="p",status="RUNNING"}', 0],
      ['evalwatch_prompts{project="p",status="COMPLETED"}', 0],
      ['evalwatch_prompts{project="p",status="FAILED"}', 7],
      ['evalwatch_prompts{project="p",status="UNKNOWN"}', 0],
    ]);
  });

  it('are counted as missing and as gone', async () => {
    const series = await scrapeStore(snapshotOf([project({ missing: 2, goneTotal: 9 })]));
    expect(series.get('evalwatch_prompts_missing{project="p"}')).toBe(2);
    expect(series.get('evalwatch_prompts_gone_total{project="p"}')).toBe(9);
  });

  it('have the times of the longest wait and of the last failure, in seconds', async () => {
    const oldest = new Map([['RUNNING', START] as const]);
    const series = await scrapeStore(
      snapshotOf([project({ oldest, lastFailureAt: START + 1000 })]),
    );
    const waiting = 'evalwatch_prompt_oldest_in_state_timestamp_seconds';
    expect(series.get(`${waiting}{project="p",status="RUNNING"}`)).toBe(1_767_225_600.123);
    expect(namesOf(series, waiting)).toHaveLength(1);
    expect(series.get('evalwatch_prompt_last_failure_timestamp_seconds{project="p"}')).toBe(
      1_767_225_601.123,
    );
  });
});

describe('transitions', () => {
  it.each<[Kind, number]>([
    ['prompt', 25],
    ['dataset', 36],
  ])('of a %s have all %i pairs, at 0 where there was none', async (kind, count) => {
    const transitions = [['PENDING', 'FAILED', 3] as const, ['NEW', 'UNKNOWN', 2] as const];
    const series = await scrapeStore(snapshotOf([project({ transitions }, kind)]), true);
    const name = `evalwatch_${kind}_transitions_total`;
    const expected = transitionPairs(kind).map(([from, to]) => [
      `${name}{project="p",from="${from}",to="${to}"}`,
      transitions.find((pair) => pair[0] === from && pair[1] === to)?.[2] ?? 0,
    ]);
    expect(expected).toHaveLength(count);
    expect(namesOf(series, name).map((key) => [key, series.get(key)])).toEqual(expected);
  });
});

describe('datasets', () => {
  const both = stored('p', {
    listings: new Map([
      ['prompt', listing()],
      ['dataset', listing({ counts: new Map([['NONE', 4]]), lastFailureAt: START })],
    ]),
  });

  it('have a status NONE and no count of missing ones', async () => {
    const series = await scrapeStore(snapshotOf([both]), true);
    expect(namesOf(series, 'evalwatch_datasets')).toHaveLength(6);
    expect(series.get('evalwatch_datasets{project="p",status="NONE"}')).toBe(4);
    expect(series.get('evalwatch_dataset_last_failure_timestamp_seconds{project="p"}')).toBe(
      START / 1000,
    );
    expect(namesOf(series, 'evalwatch_datasets_missing')).toEqual([]);
  });

  it('have no series if they are not watched, even if the store contains some', async () => {
    const series = await scrapeStore(snapshotOf([both]), false);
    expect([...series.keys()].filter((name) => name.startsWith('evalwatch_dataset'))).toEqual([]);
  });

  it('start at 0 where they are watched and were never listed', async () => {
    const series = await scrapeStore(snapshotOf([stored('p')]), true);
    expect(series.get('evalwatch_datasets{project="p",status="RUNNING"}')).toBe(0);
    expect(namesOf(series, 'evalwatch_dataset_transitions_total')).toHaveLength(36);
  });
});

describe('experiments', () => {
  const row = (of: string, experiment: string, some: Partial<PromptCounts>): ExperimentRow => {
    const counts = { ...NO_PROMPTS, ...some };
    return { key: 1, project: of, experiment, counts, state: 'running' };
  };

  /** Scrapes these experiments of `p` and `q`, of which this worker owns `p`. */
  async function scrapeExperiments(...rows: readonly ExperimentRow[]) {
    const asked: string[][] = [];
    const { metrics, scrape } = setUp({
      store: storeOf([stored('p')]),
      worker: { owns: (id) => id === 'p', leaseExpiresAt: () => undefined },
      experiments: async (projects) => {
        asked.push([...projects]);
        return rows;
      },
    });
    metrics.observe(configApplied(['p', 'q']));
    const series = await scrape();
    const names = namesOf(series, 'evalwatch_experiment_prompts');
    return { asked, found: names.map((name) => [name.slice(29, -1), series.get(name)]) };
  }

  it('have their prompts in all five statuses, of projects that this worker owns', async () => {
    const nightly = row('p', 'nightly-42', { RUNNING: 2, FAILED: 1 });
    const { asked, found } = await scrapeExperiments(nightly, row('q', 'other', { RUNNING: 1 }));
    expect(asked).toEqual([['p']]);
    expect(found).toEqual([
      ['project="p",experiment="nightly-42",status="PENDING"', 0],
      ['project="p",experiment="nightly-42",status="RUNNING"', 2],
      ['project="p",experiment="nightly-42",status="COMPLETED"', 0],
      ['project="p",experiment="nightly-42",status="FAILED"', 1],
      ['project="p",experiment="nightly-42",status="UNKNOWN"', 0],
    ]);
  });

  it('have labels of at most 100 characters on one line, none of them twice', async () => {
    const long = '😀'.repeat(500);
    const names = [`${long}a`, `${long}b`, 'a"\\\n', '\u001b[31m', '\\u001b[31m', ' '];
    const { found } = await scrapeExperiments(
      ...names.map((name, index) => row('p', name, { RUNNING: 10 ** index })),
    );
    const running = found.filter(([labels]) => labels?.toString().includes('RUNNING'));
    const labelled = running.map(([labels, value]) => {
      return [/experiment="(.*)",status/s.exec(String(labels))?.[1], value];
    });
    expect(labelled).toEqual([
      [expect.stringMatching(/^😀{91}~[0-9a-f]{8}$/u), 1],
      [expect.stringMatching(/^😀{91}~[0-9a-f]{8}$/u), 10],
      [String.raw`a\"\\\\n`, 100],
      [String.raw`\\u001b[31m`, 11_000],
      [' ', 100_000],
    ]);
  });

  it('have no series unless they are asked for', async () => {
    const series = await scrapeStore(snapshotOf([stored('p')]));
    expect(namesOf(series, 'evalwatch_experiment_prompts')).toEqual([]);
  });
});

describe('a project', () => {
  it('has its series even if it was never listed', async () => {
    const series = await scrapeStore(snapshotOf([stored('p')]));
    expect(namesOf(series, 'evalwatch_prompts')).toHaveLength(5);
    expect(namesOf(series, 'evalwatch_prompt_transitions_total')).toHaveLength(25);
    expect(series.get('evalwatch_project_configured_timestamp_seconds{project="p"}')).toBe(
      START / 1000,
    );
  });

  it.each([
    'evalwatch_prompt_last_failure_timestamp_seconds',
    'evalwatch_prompt_oldest_in_state_timestamp_seconds',
    'evalwatch_poll_last_success_timestamp_seconds',
    'evalwatch_error_info_backlog_oldest_timestamp_seconds',
  ])('has no %s before the first such event', async (name) => {
    expect(namesOf(await scrapeStore(snapshotOf([stored('p')])), name)).toEqual([]);
  });

  it('counts failures by error_id, with "none" and "other" starting at 0', async () => {
    const errors = [
      { label: 'MODEL_TIMEOUT', count: 2, firstSeenAt: START },
      { label: 'other', count: 3, firstSeenAt: START },
    ];
    const listings = new Map([['prompt' as const, listing({ errors })]]);
    const series = await scrapeStore(snapshotOf([stored('p', { listings }), stored('q')]));
    const told = [...series].filter(([name]) => name.includes('error_id='));
    expect(Object.fromEntries(told)).toEqual({
      'evalwatch_prompt_failures_total{project="p",error_id="MODEL_TIMEOUT"}': 2,
      'evalwatch_prompt_failures_total{project="p",error_id="other"}': 3,
      'evalwatch_prompt_failures_total{project="p",error_id="none"}': 0,
      'evalwatch_prompt_failures_total{project="q",error_id="other"}': 0,
      'evalwatch_prompt_failures_total{project="q",error_id="none"}': 0,
      'evalwatch_prompt_error_first_seen_timestamp_seconds{project="p",error_id="MODEL_TIMEOUT"}':
        START / 1000,
    });
  });

  it('has the time of its last successful poll', async () => {
    const health = { ...NEVER_POLLED, lastSuccessAt: START };
    const series = await scrapeStore(snapshotOf([stored('p', { health })]));
    expect(series.get('evalwatch_poll_last_success_timestamp_seconds{project="p"}')).toBe(
      START / 1000,
    );
  });
});

it('the backlog of failures without error_info is counted, with the time of the oldest', async () => {
  const series = await scrapeStore(snapshotOf([], { count: 3, oldestAt: START }));
  expect(series.get('evalwatch_error_info_backlog')).toBe(3);
  expect(series.get('evalwatch_error_info_backlog_oldest_timestamp_seconds')).toBe(START / 1000);
});
