import { describe, expect, it } from 'vitest';
import { StoreError } from '../../../src/monitor/errors.ts';
import type { MonitorEvent } from '../../../src/monitor/events.ts';
import type { Kind, Origin } from '../../../src/domain/status.ts';
import type { PollHealth, StoreSnapshot } from '../../../src/monitor/ports/store.ts';
import type { MetricsOptions } from '../../../src/metrics/metrics.ts';
import { parseExposition } from './parse-exposition.ts';
import { NEVER_POLLED } from '../../../src/monitor/memory.ts';
import { START, setUp, snapshotOf, stored, storeOf } from './setup.ts';

const NO_CHANGES = { added: [], removed: [], changed: [], omitted: undefined, sections: [] };

/** What the events below change, without evalwatch_. */
const COUNTED = `
project_consecutive_poll_failures{project="p"} 3
polls_total{project="p"} 3
poll_failures_total{project="p",reason="timeout"} 1
polls_unchanged_total{project="p"} 1
prompt_state_duration_seconds_bucket{project="p",status="PENDING",le="60"} 1
prompt_state_duration_seconds_sum{project="p",status="PENDING"} 60
prompt_state_duration_seconds_count{project="p",status="PENDING"} 1
prompt_state_duration_seconds_bucket{project="p",status="RUNNING",le="300"} 1
prompt_state_duration_seconds_bucket{project="p",status="RUNNING",le="+Inf"} 2
prompt_state_duration_seconds_sum{project="p",status="RUNNING"} 90061.5
prompt_state_duration_seconds_count{project="p",status="RUNNING"} 2
item_anomalies_total{project="p",reason="duplicate_id"} 12
scheduler_overlapped_runs_total{project="p"} 1
scheduler_missed_runs_total{project="p"} 5
poll_duration_seconds_bucket{le="0.5"} 3
poll_duration_seconds_sum 0.8999999999999999
poll_duration_seconds_count 3
api_requests_total{endpoint="list_prompts",code="429"} 1
api_requests_total{endpoint="list_datasets",code="other"} 1
api_request_failures_total{endpoint="get_prompt",reason="tls"} 1
api_request_duration_seconds_bucket{le="0.25",endpoint="get_prompt"} 2
api_request_duration_seconds_sum{endpoint="get_prompt"} 0.24
api_request_duration_seconds_count{endpoint="get_prompt"} 2
api_retries_total{endpoint="list_prompts"} 1
api_response_bytes_total{endpoint="get_prompt"} 1000
error_info_fetches_total 2
error_info_fetch_failures_total 1
store_commit_duration_seconds_bucket{le="0.005"} 1
store_commit_duration_seconds_sum 0.003
store_commit_duration_seconds_count 1
store_commit_failures_total{reason="full"} 1
scheduler_lag_seconds_bucket{le="1"} 1
scheduler_lag_seconds_sum 0.7
scheduler_lag_seconds_count 1
`;

type PollFinished = Extract<MonitorEvent, { type: 'poll.finished' }>;

function finished(project: string, fields: Partial<PollFinished> = {}): PollFinished {
  return {
    type: 'poll.finished',
    isStored: true,
    project,
    durationMs: 300,
    health: { ...NEVER_POLLED, up: true, lastSuccessAt: START },
    failuresBefore: 0,
    failure: undefined,
    unchanged: false,
    prompts: 1,
    transitions: 0,
    changed: false,
    ...fields,
  };
}

describe('the first scrape', () => {
  it('has every series of a counter and of a histogram at 0', async () => {
    const { configure, render } = setUp();
    configure('p');
    const families = [...parseExposition(await render())].filter(
      ([name, { type }]) => name.startsWith('evalwatch_') && type !== 'gauge',
    );
    const counts = families.map(([name, { samples }]) => [name, samples.size]);
    expect(Object.fromEntries(counts)).toMatchObject({
      evalwatch_polls_total: 1,
      evalwatch_poll_failures_total: 13,
      evalwatch_prompt_state_duration_seconds: 2 * (7 + 2),
      evalwatch_api_requests_total: 3 * 14,
      evalwatch_store_commit_failures_total: 6,
      evalwatch_log_messages_total: 4,
    });
    for (const [, { samples }] of families) expect(new Set(samples.values())).toEqual(new Set([0]));
  });

  it('has the version, the time of the configuration and the size of the store', async () => {
    const { scrape } = setUp();
    const node = process.versions.node;
    const build = `version="1.2.3",revision="abc",node_version="${node}",sqlite_version="3.54.0"`;
    const series = await scrape();
    expect(series.get(`evalwatch_build_info{${build}}`)).toBe(1);
    expect(series.get('evalwatch_config_last_reload_successful')).toBe(1);
    expect(series.get('evalwatch_config_last_reload_success_timestamp_seconds')).toBe(START / 1000);
    expect(series.get('evalwatch_store_database_bytes')).toBe(4096);
    expect(series.get('evalwatch_store_wal_bytes')).toBe(0);
  });

  it("has prom-client's metrics of the process, without gauges that end in _total", async () => {
    const { scrape } = setUp();
    const names = [...(await scrape()).keys()];
    expect(names).toContain('process_start_time_seconds');
    expect(names).toContain('nodejs_eventloop_lag_seconds');
    expect(names.filter((name) => /^nodejs_active_.*_total/.test(name))).toEqual([]);
  });
});

describe('a project', () => {
  it.each(['quote"', 'back\\slash', 'line\nfeed', '\\n', 'héllo 😀', '{a="b"}'])(
    'has its id %j escaped in labels',
    async (id) => {
      const { configure, scrape } = setUp();
      configure(id);
      const escaped = JSON.stringify(id);
      expect((await scrape()).get(`evalwatch_polls_total{project=${escaped}}`)).toBe(0);
    },
  );

  it('has no series after its removal, even if late events arrive', async () => {
    const { metrics, configure, scrape } = setUp({
      store: storeOf([stored('gone'), stored('stays')]),
      schedule: () => ({ nextPollAt: 1, maxIntervalSeconds: 1 }),
    });
    configure('gone', 'stays');
    metrics.observe(finished('gone'));
    configure('stays');
    metrics.observe(finished('gone'));
    metrics.observe({ type: 'scheduler.overlapped', project: 'gone' });
    const labels = [...(await scrape()).keys()].filter((series) => series.includes('project="'));
    expect(labels.length).toBeGreaterThan(0);
    expect(labels.filter((series) => series.includes('gone"'))).toEqual([]);
  });

  it('keeps its counters through a reload, and restarts at 0 when it is added again', async () => {
    const { metrics, configure, scrape } = setUp();
    const polls = async () => (await scrape()).get('evalwatch_polls_total{project="p"}');
    configure('p');
    metrics.observe(finished('p'));
    configure('p', 'q');
    expect(await polls()).toBe(1);
    configure('q');
    expect(await polls()).toBeUndefined();
    configure('p');
    expect(await polls()).toBe(0);
  });

  it('starts with the health from the store', async () => {
    const { health, configure, scrape } = setUp();
    health.set('p', { ...NEVER_POLLED, consecutiveFailures: 4, reason: 'auth' });
    configure('p');
    const series = await scrape();
    expect(series.get('evalwatch_project_up{project="p"}')).toBe(0);
    expect(series.get('evalwatch_project_consecutive_poll_failures{project="p"}')).toBe(4);
    expect(series.get('evalwatch_project_poll_failing{project="p",reason="auth"}')).toBe(1);
  });

  it('has the time of its next poll only if one is scheduled, and always its longest interval', async () => {
    const { configure, scrape } = setUp({
      schedule: (project) =>
        project === 'p'
          ? { nextPollAt: START, maxIntervalSeconds: 86_400 }
          : { nextPollAt: undefined, maxIntervalSeconds: 10 },
    });
    configure('p', 'idle');
    const series = await scrape();
    const next = 'evalwatch_project_next_poll_timestamp_seconds';
    const interval = 'evalwatch_project_schedule_max_interval_seconds';
    expect(series.get(`${next}{project="p"}`)).toBe(START / 1000);
    expect(series.has(`${next}{project="idle"}`)).toBe(false);
    expect(series.get(`${interval}{project="p"}`)).toBe(86_400);
    expect(series.get(`${interval}{project="idle"}`)).toBe(10);
  });
});

describe('the metrics', () => {
  const failure = { reason: 'timeout', message: 'm', details: {} } as const;
  const down = { ...NEVER_POLLED, consecutiveFailures: 3 };
  const move = (from: Origin, heldMs: number, kind: Kind = 'prompt'): MonitorEvent => {
    const transition = { id: 'i', name: undefined, transitionId: 1, kind, from, heldMs };
    return {
      type: 'record.transition',
      project: 'p',
      transition: { ...transition, to: 'FAILED' },
    };
  };
  const request = {
    type: 'api.request_finished',
    endpoint: 'get_prompt',
    durationMs: 120,
    bytes: 500,
    failure: undefined,
  } as const;
  const about = { project: 'p', kind: 'prompt' } as const;
  const EVENTS: readonly MonitorEvent[] = [
    finished('p'),
    finished('p', { unchanged: true }),
    // A failed poll is not an unchanged one.
    finished('p', { failure, unchanged: true, health: down }),
    move('RUNNING', 61_500),
    move('RUNNING', 90_000_000),
    // A wait of exactly a bound is in its bucket.
    move('PENDING', 60_000),
    // Neither of these is a wait of a prompt.
    move('RUNNING', 61_500, 'dataset'),
    move('COMPLETED', 61_500),
    {
      type: 'items.anomalous',
      ...about,
      reason: 'duplicate_id',
      count: 12,
      indexes: [1],
      changed: false,
    },
    { type: 'error_info.fetched', ok: true },
    { type: 'error_info.fetched', ok: false },
    { type: 'api.responded', endpoint: 'list_prompts', statusCode: 429 },
    { type: 'api.responded', endpoint: 'list_datasets', statusCode: 418 },
    request,
    { ...request, failure: 'tls' },
    { type: 'api.retry_sent', endpoint: 'list_prompts' },
    // A retry counts when it is sent.
    {
      type: 'api.retry_scheduled',
      project: 'p',
      endpoint: 'get_prompt',
      attempt: 1,
      delayMs: 1,
      reason: 'network',
      statusCode: undefined,
    },
    { type: 'store.committed', durationMs: 3 },
    { type: 'store.commit_failed', reason: 'full', error: new Error('full') },
    { type: 'scheduler.started_poll', project: 'p', lagMs: 700 },
    { type: 'scheduler.overlapped', project: 'p' },
    { type: 'scheduler.missed', project: 'p', count: 5 },
  ];

  it('count each event, and nothing else', async () => {
    const { metrics, configure, scrape } = setUp();
    configure('p');
    const before = await scrape();
    for (const event of EVENTS) metrics.observe(event);
    const changed = [...(await scrape())].filter(
      ([name, value]) => name.startsWith('evalwatch_') && value !== before.get(name),
    );
    // Of the buckets of a histogram only those in which something was counted.
    const counted = new Map<string, number>();
    const lines: string[] = [];
    for (const [name, value] of changed) {
      const histogram = name.replace(/,?le="[^"]+"/, '');
      if (name.includes('le="') && counted.get(histogram) === value) continue;
      counted.set(histogram, value);
      lines.push(`${name.replace('evalwatch_', '')} ${value}`);
    }
    expect(lines).toEqual(COUNTED.trim().split('\n'));
  });

  it('count messages by receiver, and show since when something waits for it', async () => {
    let receivers = [
      { name: 'chat', oldestDueAt: START - 1500 },
      { name: 'mail', oldestDueAt: undefined },
    ];
    const { metrics, scrape } = setUp({ receivers: () => receivers });
    const series = async () => {
      const found = [...(await scrape())].filter(([name]) => name.includes('notification'));
      return found.map(([name, value]) => `${name.replace('evalwatch_notification', '')} ${value}`);
    };
    const givenUp = { project: 'p', message: 'prompts.failed', count: 9, reason: '503' };
    for (const receiver of ['chat', 'removed']) {
      metrics.observe({ type: 'notification.sent', receiver, id: '1', message: 'test' });
      metrics.observe({ type: 'notification.given_up', receiver, ...givenUp });
      metrics.observe({ type: 'notification.sent', receiver, id: '2', message: 'test' });
    }
    const due = `_oldest_due_timestamp_seconds{receiver="chat"} ${(START - 1500) / 1000}`;
    expect(await series()).toEqual([
      's_total{receiver="chat",outcome="sent"} 2',
      's_total{receiver="chat",outcome="given_up"} 1',
      's_total{receiver="mail",outcome="sent"} 0',
      's_total{receiver="mail",outcome="given_up"} 0',
      due,
    ]);
    receivers = [];
    expect(await series()).toEqual([]);
  });

  it('count log lines by level', async () => {
    const logLines = { debug: 0, info: 0, warn: 0, error: 2 };
    const { scrape } = setUp({ logLines });
    logLines.error += 1;
    expect((await scrape()).get('evalwatch_log_messages_total{level="error"}')).toBe(3);
  });

  it('keep the time of the last successful reload after a failed one', async () => {
    const { metrics, clock, scrape } = setUp();
    const reload = async () => {
      const series = await scrape();
      return [
        series.get('evalwatch_config_last_reload_successful'),
        series.get('evalwatch_config_last_reload_success_timestamp_seconds'),
      ];
    };
    clock.time = START + 60_000;
    metrics.observe({ type: 'config.reload_failed', reasons: ['no'], isRepeated: false });
    expect(await reload()).toEqual([0, START / 1000]);
    metrics.observe({ type: 'config.reloaded', projects: 0, changes: NO_CHANGES });
    expect(await reload()).toEqual([1, (START + 60_000) / 1000]);
  });
});

describe('a store that cannot be read', () => {
  const broken = (error: unknown) => ({
    snapshot: async (): Promise<StoreSnapshot> => {
      throw error;
    },
    size: async () => ({ database: 1, wal: 1 }),
  });

  it('removes only its own series from a scrape, and is counted in the same scrape', async () => {
    const error = new StoreError('corrupt', 'malformed');
    const { metrics, configure, scrape, emitted } = setUp({ store: broken(error) });
    configure('p');
    metrics.observe(finished('p'));
    const series = await scrape();
    expect(series.get('evalwatch_project_up{project="p"}')).toBe(1);
    expect(series.get('evalwatch_project_consecutive_poll_failures{project="p"}')).toBe(0);
    expect(series.get('evalwatch_polls_total{project="p"}')).toBe(1);
    expect(series.get('evalwatch_store_commit_failures_total{reason="corrupt"}')).toBe(1);
    expect([...series.keys()].filter((name) => name.startsWith('evalwatch_prompts'))).toEqual([]);
    expect(series.has('evalwatch_error_info_backlog')).toBe(false);
    expect(emitted).toEqual([{ type: 'store.commit_failed', reason: 'corrupt', error }]);
  });

  it('fails the scrape if the error is unexpected, and counts no store failure', async () => {
    const bug = new TypeError('what?');
    const { metrics, emitted } = setUp({ store: broken(bug) });
    await expect(metrics.render()).rejects.toBe(bug);
    expect(emitted).toEqual([]);
  });

  it('has no size metrics if the sizes cannot be read', async () => {
    const { scrape } = setUp({
      store: {
        snapshot: async () => snapshotOf([]),
        size: () => Promise.reject(new StoreError('io', 'gone')),
      },
    });
    const series = await scrape();
    expect(series.has('evalwatch_store_database_bytes')).toBe(false);
    expect(series.get('evalwatch_error_info_backlog')).toBe(0);
    expect(series.get('evalwatch_store_commit_failures_total{reason="io"}')).toBe(1);
  });
});

it('concurrent scrapes share one read of the store, and a later scrape reads again', async () => {
  let reads = 0;
  const { metrics } = setUp({
    store: {
      snapshot: async () => {
        reads += 1;
        return snapshotOf([]);
      },
      size: async () => ({ database: 1, wal: 1 }),
    },
  });
  await Promise.all([metrics.render(), metrics.render(), metrics.render()]);
  expect(reads).toBe(1);
  await metrics.render();
  expect(reads).toBe(2);
});

describe('one of several workers', () => {
  const up = { ...NEVER_POLLED, up: true, lastPollAt: START + 5000, lastSuccessAt: START + 5000 };

  /** Sets up a worker that may own p, q and r, and a store that returns its projects and the number of all. */
  function setUpWorker(options: Partial<MetricsOptions> = {}) {
    const owned = new Set<string>();
    const said = { configured: 9, projects: ['p', 'q', 'r'], fails: false };
    const read = async <Value>(value: Value) => {
      if (said.fails) throw new StoreError('io', 'no answer');
      return value;
    };
    const given = setUp({
      worker: { owns: (project) => owned.has(project), leaseExpiresAt: () => START + 10_000 },
      store: {
        snapshot: () => {
          const projects = said.projects.map((id) => stored(id));
          return read({ ...snapshotOf(projects), configured: said.configured });
        },
        size: () => read({ database: 4096, wal: undefined }),
      },
      schedule: () => ({ nextPollAt: START, maxIntervalSeconds: 30 }),
      ...options,
    });
    given.configure('p', 'q', 'r');
    return {
      ...given,
      said,
      take: (project: string, health: PollHealth = NEVER_POLLED) => {
        owned.add(project);
        given.health.set(project, health);
        given.metrics.changeOwnership({ taken: [{ project }], dropped: [] });
      },
      drop: (project: string) => {
        owned.delete(project);
        given.metrics.changeOwnership({ taken: [], dropped: [project] });
      },
      /** Ends its lease without a notification. */
      expire: () => owned.clear(),
      /** Returns the numbers of projects as shown, and the projects with series. */
      shown: async () => {
        const series = await given.scrape();
        const projects = [...series.keys()].map((name) => /[{,]project="(\w+)"/.exec(name)?.[1]);
        return {
          owned: series.get('evalwatch_worker_projects'),
          configured: series.get('evalwatch_projects_configured'),
          projects: [...new Set(projects.filter((project) => project !== undefined))].toSorted(),
        };
      },
    };
  }

  it('has the expiry of its lease and the number of refused commits', async () => {
    const { metrics, scrape } = setUpWorker();
    metrics.observe({
      type: 'store.commit_refused',
      project: 'p',
    });
    const series = await scrape();
    expect(series.get('evalwatch_worker_lease_expiry_timestamp_seconds')).toBe(
      (START + 10_000) / 1000,
    );
    expect(series.get('evalwatch_store_commits_refused_total')).toBe(1);
  });

  it('has no lease expiry before its first lease', async () => {
    const { scrape } = setUp({ worker: { owns: () => false, leaseExpiresAt: () => undefined } });
    const series = await scrape();
    expect(series.get('evalwatch_worker_projects')).toBe(0);
    expect(series.has('evalwatch_worker_lease_expiry_timestamp_seconds')).toBe(false);
  });

  it('has the store engine, and with PostgreSQL neither a WAL size nor an SQLite version', async () => {
    const { scrape } = setUpWorker({ storeInfo: { engine: 'postgresql', version: '17.2' } });
    const series = await scrape();
    expect(series.get('evalwatch_store_info{engine="postgresql",version="17.2"}')).toBe(1);
    expect([...series.keys()].find((name) => name.startsWith('evalwatch_build_info'))).toContain(
      'sqlite_version=""',
    );
    expect(series.has('evalwatch_store_wal_bytes')).toBe(false);
  });

  it('has series only of projects that it owns', async () => {
    const worker = setUpWorker();
    expect(await worker.shown()).toEqual({ owned: 0, configured: 9, projects: [] });
    worker.take('p');
    worker.take('r', up);
    expect(await worker.shown()).toEqual({ owned: 2, configured: 9, projects: ['p', 'r'] });
    const series = await worker.scrape();
    expect(series.get('evalwatch_project_up{project="p"}')).toBe(0);
    expect(series.get('evalwatch_project_up{project="r"}')).toBe(1);
    expect(series.get('evalwatch_polls_total{project="r"}')).toBe(0);
    worker.drop('p');
    expect(await worker.shown()).toEqual({ owned: 1, configured: 9, projects: ['r'] });
  });

  it('restarts the counters of a project that it takes again, and keeps them through a reload', async () => {
    const worker = setUpWorker();
    const polls = async () => (await worker.scrape()).get('evalwatch_polls_total{project="p"}');
    worker.take('p');
    worker.metrics.observe(finished('p'));
    worker.configure('p', 'q', 'r', 'new');
    expect(await polls()).toBe(1);
    expect((await worker.shown()).projects).toEqual(['p']);
    worker.drop('p');
    worker.metrics.observe(finished('p'));
    expect(await polls()).toBeUndefined();
    worker.take('p');
    expect(await polls()).toBe(0);
  });

  it('has the in-memory series of its projects until its lease ends if the store cannot be read', async () => {
    const worker = setUpWorker();
    worker.take('p', up);
    await worker.scrape();
    Object.assign(worker.said, { fails: true, configured: 5 });
    expect(await worker.shown()).toEqual({ owned: 1, configured: 9, projects: ['p'] });
    const series = await worker.scrape();
    expect(series.get('evalwatch_project_up{project="p"}')).toBe(1);
    expect(series.has('evalwatch_project_configured_timestamp_seconds{project="p"}')).toBe(false);
    worker.expire();
    expect(await worker.shown()).toEqual({ owned: 0, configured: 9, projects: [] });
  });

  it('counts only projects with series in this scrape as owned', async () => {
    const worker = setUpWorker();
    worker.take('p');
    worker.take('q');
    // Another worker owns p by now, or its configuration has removed p.
    worker.said.projects = ['q', 'r'];
    expect(await worker.shown()).toEqual({ owned: 1, configured: 9, projects: ['q'] });
    // q is owned, but not configured here.
    worker.configure('p');
    expect(await worker.shown()).toEqual({ owned: 0, configured: 9, projects: [] });
  });

  it('has its own number of configured projects until it has read that of all workers', async () => {
    const worker = setUpWorker();
    worker.said.fails = true;
    expect(await worker.shown()).toMatchObject({ configured: 3 });
  });
});

it('a single daemon has its number of projects, and no metrics of workers', async () => {
  const { configure, scrape } = setUp();
  configure('p', 'q');
  const series = await scrape();
  expect(series.get('evalwatch_projects_configured')).toBe(2);
  expect([...series.keys()].filter((name) => /worker|refused/.test(name))).toEqual([]);
});
