import { spawnSync } from 'node:child_process';
import { describe, expect, it, vi } from 'vitest';
import { debianTool, IN_CI } from '../support/debian-tool.ts';
import { startHere } from '../support/daemon-here.ts';
import { PATIENCE, UNHURRIED, workspace } from '../support/evalwatch.ts';
import { METRICS, type MetricFact } from '../support/metrics-table.ts';
import { scrape, seriesName } from '../support/scrape.ts';
import { startAlpha, startService } from '../support/service.ts';

const PROJECTS = [{ id: 'alpha', datasets: true }, { id: 'b "quoted" \\ line\nfeed' }];

/** Project ids escaped as label values. */
const ESCAPED = ['alpha', String.raw`b \"quoted\" \\ line\nfeed`];

/** Returns every series of a metric that must exist before anything has happened. */
function seriesOf({ name, type, per, labels, buckets }: MetricFact): readonly string[] {
  const projects = { project: ESCAPED, datasets: ['alpha'], process: [undefined] }[per];
  return projects
    .flatMap((project) => labels.map((more) => ({ ...(project && { project }), ...more })))
    .flatMap((set) =>
      type === 'histogram'
        ? [
            ...buckets.map((le) => seriesName(`${name}_bucket`, { ...set, le })),
            seriesName(`${name}_sum`, set),
            seriesName(`${name}_count`, set),
          ]
        : [seriesName(name, set)],
    );
}

/** Sorts labels, whose order has no meaning. */
function sorted(series: Iterable<string>): readonly string[] {
  return [...series]
    .map((each) => {
      const [name = '', labels = ''] = each.split(/\{(.*)\}$/s);
      const parts = labels.match(/[a-z_]+="(?:[^"\\]|\\.)*"/g) ?? [];
      return `${name}{${parts.toSorted().join(',')}}`;
    })
    .toSorted();
}

it('the first scrape, before any poll has completed, has every series in the text format 0.0.4, counters at 0', async () => {
  await using service = await startService(() => {});
  await using place = await workspace(service.url, { projects: PROJECTS, schedule: '0 0 1 1 *' });
  await using daemon = await startHere(place);
  const first = await scrape(await daemon.url());
  const samplesOf = (name: string) => [...(first.families.get(name)?.samples ?? [])];
  expect(first.status).toBe(200);
  expect(first.contentType).toMatch(/^text\/plain; version=0\.0\.4\b/);

  for (const fact of METRICS) {
    const { name, absentAtFirst } = fact;
    const series = samplesOf(name).map(([each]) => each);
    const { type } = first.families.get(name) ?? {};
    expect([name, type, sorted(series)]).toEqual([
      name,
      absentAtFirst ? type : fact.type,
      absentAtFirst ? [] : sorted(seriesOf(fact)),
    ]);
  }
  const zero = [
    // The start has logged a line or two already.
    ...METRICS.filter(
      ({ type, name, absentAtFirst }) =>
        type === 'counter' && !absentAtFirst && !name.includes('_log_'),
    ).map(({ name }) => name),
    'evalwatch_project_up',
    'evalwatch_project_consecutive_poll_failures',
    'evalwatch_prompts',
    'evalwatch_error_info_backlog',
  ];
  for (const name of zero) {
    expect([name, new Set(samplesOf(name).map(([, value]) => value))]).toEqual([
      name,
      new Set([0]),
    ]);
  }

  const known = new Set(METRICS.map(({ name }) => name));
  const others = [...first.families.keys()].filter((name) => !known.has(name));
  expect(others.filter((name) => name.startsWith('evalwatch_'))).toEqual([
    'evalwatch_store_info',
    'evalwatch_build_info',
  ]);
  expect(samplesOf('evalwatch_store_info')).toEqual([
    [expect.stringMatching(/^evalwatch_store_info\{engine="sqlite",version="3\.[^"]+"\}$/), 1],
  ]);
  expect(samplesOf('evalwatch_build_info')).toEqual([
    [
      expect.stringMatching(
        /^evalwatch_build_info\{version="[^"]+",revision="[^"]+",node_version="[^"]+",sqlite_version="3\.[^"]+"\}$/,
      ),
      1,
    ],
  ]);
  expect(first.value('process_resident_memory_bytes')).toBeGreaterThan(0);
  expect(first.families.has('nodejs_eventloop_lag_seconds')).toBe(true);
});

describe('the metrics of a running daemon', UNHURRIED, () => {
  it('count polls, statuses, transitions, failures and requests', async () => {
    await using service = await startAlpha();
    service.set({ p1: 'RUNNING', p2: 'PENDING', p3: 'paused' });
    await using place = await workspace(service.url);
    const startedAt = Date.now() / 1000;
    await using daemon = await startHere(place);
    await daemon.line('project.baseline');
    service.set({ p1: 'FAILED', p4: 'COMPLETED' });
    await daemon.line('prompt.failed');
    const url = await daemon.url();
    const seen = await vi.waitFor(async () => {
      const now = await scrape(url);
      expect(now.value('evalwatch_error_info_backlog')).toBe(0);
      expect(now.value('evalwatch_polls_unchanged_total', { project: 'alpha' })).toBeGreaterThan(1);
      return now;
    }, PATIENCE);
    const project = 'alpha';
    const value = (name: string, labels = {}) =>
      seen.value(`evalwatch_${name}`, { project, ...labels });
    expect(value('project_up')).toBe(1);
    expect(value('prompts', { status: 'FAILED' })).toBe(1);
    expect(value('prompts', { status: 'UNKNOWN' })).toBe(1);
    expect(value('prompt_transitions_total', { from: 'RUNNING', to: 'FAILED' })).toBe(1);
    expect(value('prompt_transitions_total', { from: 'NEW', to: 'COMPLETED' })).toBe(1);
    expect(value('prompt_state_duration_seconds_count', { status: 'RUNNING' })).toBe(1);
    const oldest = value('prompt_oldest_in_state_timestamp_seconds', { status: 'PENDING' });
    expect(oldest).toBeGreaterThanOrEqual(startedAt);
    expect(oldest).toBeLessThanOrEqual(value('poll_last_success_timestamp_seconds') ?? 0);
    expect(
      value('prompt_oldest_in_state_timestamp_seconds', { status: 'RUNNING' }),
    ).toBeUndefined();
    // Unchanged listings count too.
    const polls = value('polls_total') ?? 0;
    expect(value('item_anomalies_total', { reason: 'unknown_status' })).toBe(polls);
    expect(value('schedule_max_interval_seconds')).toBeUndefined();
    expect(value('project_schedule_max_interval_seconds')).toBe(1);
    expect(seen.value('evalwatch_error_info_fetches_total')).toBe(1);
    expect(seen.value('evalwatch_poll_duration_seconds_count')).toBe(polls);
    expect(
      seen.value('evalwatch_api_requests_total', { endpoint: 'list_prompts', code: '200' }),
    ).toBe(polls);
    const level = { level: 'error' };
    expect(seen.value('evalwatch_log_messages_total', level)).toBe(1);
  });

  it('count the prompts of the newest experiments that have not finished, as many as are configured', async () => {
    await using service = await startAlpha();
    service.set({ p0: 'COMPLETED' }, 'old');
    await using place = await workspace(service.url, { metrics: { experiments: 2 } });
    await using daemon = await startHere(place);
    await daemon.line('project.baseline');
    const url = await daemon.url();
    const name = 'evalwatch_experiment_prompts';
    const running = async () => {
      const { families } = await scrape(url);
      const series = [...(families.get(name)?.samples ?? [])].filter(([, count]) => count > 0);
      return Object.fromEntries(series.map(([each, count]) => [each.slice(name.length), count]));
    };
    const of = (experiment: string, status = 'RUNNING') =>
      `{project="alpha",experiment="${experiment}",status="${status}"}`;
    expect(await running()).toEqual({});

    for (const experiment of ['one', 'two', 'th"ree']) {
      service.set({ [`${experiment}-1`]: 'RUNNING', [`${experiment}-2`]: 'RUNNING' }, experiment);
      await daemon.line('prompt.transition', { prompt_id: `${experiment}-1` });
    }
    await vi.waitFor(async () => {
      expect(await running()).toEqual({ [of(String.raw`th\"ree`)]: 2, [of('two')]: 2 });
    }, PATIENCE);
    service.set({ 'two-1': 'COMPLETED', 'two-2': 'FAILED' });
    await daemon.line('experiment.finished', { experiment: 'two' });
    expect(await running()).toEqual({ [of('one')]: 2, [of(String.raw`th\"ree`)]: 2 });
    await place.configure({ metrics: { experiments: 0 } });
    expect(await daemon.reload()).toEqual({ ok: true, reasons: [] });
    expect(await running()).toEqual({});
  });

  const promtool = debianTool('prometheus', 'promtool') ?? '';
  // In CI a missing promtool fails the test instead of skipping it.
  it.runIf(promtool !== '' || IN_CI)('pass promtool check metrics', async () => {
    await using service = await startAlpha();
    service.set({ p1: 'RUNNING' });
    await using place = await workspace(service.url, { projects: PROJECTS });
    await using daemon = await startHere(place);
    const url = await daemon.url();
    const early = await scrape(url);
    await daemon.line('project.baseline');
    service.set({ p1: 'FAILED' });
    await daemon.line('prompt.failed');
    const late = await scrape(url);
    for (const { text: input } of [early, late]) {
      const checked = spawnSync(promtool, ['check', 'metrics'], { input, encoding: 'utf8' });
      expect(checked).toMatchObject({ status: 0, stdout: '', stderr: '' });
    }
  });
});
