import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { causeOf } from '../../../src/domain/cause.ts';
import { dayOf, type AddedDurations } from '../../../src/domain/limits.ts';
import type { Listing } from '../../../src/domain/record.ts';
import { statusOf, type Kind } from '../../../src/domain/status.ts';
import type { Store } from '../../../src/monitor/ports/store.ts';
import { commandLine, evalwatch } from '../../support/command-line.ts';
import { ENTRY } from '../../support/entry.ts';
import { temporaryDirectory, writeConfiguration } from './configuration-file.ts';
import { compareListing } from '../../../src/domain/transition.ts';
import { type Items, pollItems } from '../../support/experiments.ts';
import { settle } from '../../support/failures.ts';
import { openStoreInProcess } from '../../support/store-in-process.ts';

const HOUR = 60 * 60 * 1000;
const NOW = Date.now();
const iso = (ms: number) => new Date(ms).toISOString();

/** Statuses of a listing by id, with a name where there is one. */
type Shown = Readonly<Record<string, string | { readonly status: string; readonly name: string }>>;

async function commit(
  store: Store,
  project: string,
  at: number,
  shown: Shown,
  kind: Kind = 'prompt',
  durations: readonly AddedDurations[] = [],
) {
  const records = Object.entries(shown).map(([id, item]) => {
    const raw = typeof item === 'string' ? item : item.status;
    const status = statusOf(raw);
    const name = typeof item === 'string' ? undefined : item.name;
    const statusRaw = status === 'UNKNOWN' ? raw : undefined;
    return [id, { id, status, statusRaw, name, timestamp: undefined }] as const;
  });
  const listing: Listing = {
    records: new Map(records),
    idsWithoutStatus: new Set(),
    complete: true,
    anomalies: [],
  };
  const known = await store.loadKnown(project, [kind]);
  const before = known.listings.get(kind);
  if (before === undefined) throw new Error('nothing known');
  const { changes } = await compareListing(before, listing, { at, missingAfter: 3 });
  const committed = await store.commitPoll({
    project,
    at,
    health: {
      up: true,
      consecutiveFailures: 0,
      reason: undefined,
      lastPollAt: at,
      lastSuccessAt: at,
    },
    token: known.token,
    listings: new Map([[kind, changes]]),
    durations,
  });
  return committed?.transitions.map(({ transitionId }) => transitionId) ?? [];
}

let config: string;
let database: string;
beforeEach(() => {
  const directory = temporaryDirectory();
  config = writeConfiguration(directory, [{ id: 'checkout-bot' }, { id: 'search' }]);
  database = join(directory, 'evalwatch.db');
});

async function withStore<T>(work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStoreInProcess({ path: database, clock: systemClock, emit: () => {} });
  try {
    await store.configureProjects(['checkout-bot', 'search'], NOW - 100 * HOUR);
    return await work(store);
  } finally {
    await store.close();
  }
}

const run = (...args: string[]) => commandLine([...args, '--config', config]);
/** Returns the rows of a table, with bars between their cells. */
const cellsOf = (table: string) =>
  table
    .trimEnd()
    .split('\n')
    .map((line) => line.replaceAll(/ {2,}/g, '|'));
const runProcess = (...args: string[]) => evalwatch([...args, '--config', config]);

async function json(...args: string[]): Promise<unknown> {
  const { code, stdout, stderr } = await run(...args, '--json');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout);
}

/** Stores moves of four prompts and a dataset. */
function someHistory() {
  return withStore(async (store) => {
    await commit(store, 'checkout-bot', NOW - 50 * HOUR, {
      'prompt-1': { status: 'PENDING', name: 'Refund tone' },
      'prompt-2': 'RUNNING',
    });
    await commit(store, 'checkout-bot', NOW - 50 * HOUR, { 'data-1': 'PENDING' }, 'dataset');
    await commit(store, 'search', NOW - 40 * HOUR, { 'prompt-1': 'COMPLETED' });
    const old = await commit(store, 'checkout-bot', NOW - 30 * HOUR, {
      'prompt-1': { status: 'RUNNING', name: 'Refund tone' },
      'prompt-2': 'FAILED',
    });
    const dataset = await commit(
      store,
      'checkout-bot',
      NOW - 20 * HOUR,
      { 'data-1': 'FAILED' },
      'dataset',
    );
    const young = await commit(store, 'search', NOW - HOUR, {
      'prompt-1': 'queued',
      'prompt-3': 'FAILED',
    });
    return { ids: [...old, ...dataset, ...young], store };
  });
}

describe('projects', () => {
  it('prints whether each is polled, its prompts and failures, those that are down first', async () => {
    await someHistory();
    const down = {
      up: false,
      consecutiveFailures: 3,
      reason: 'auth',
      steadySince: undefined,
    } as const;
    await withStore(async (store) => {
      const times = { lastPollAt: NOW - HOUR, lastSuccessAt: NOW - 2 * HOUR };
      store.keepHealth('search', { ...down, ...times });
      await store.loadHealth('search');
    });
    config = writeConfiguration(join(config, '..'), [
      { id: 'checkout-bot', schedule: '0 0 1 1 *', idle_schedule: '0 * * * *' },
      { id: 'search', team: 'ranking' },
    ]);
    const { code, stdout, stderr } = await run('projects');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const [header, search, bot] = cellsOf(stdout);
    expect(header).toBe(
      'project|state|reason|last_success|next_poll|PENDING|RUNNING|COMPLETED|FAILED|UNKNOWN|failures_24h|team',
    );
    expect(search).toMatch(/^search\|down\|auth\|\S+Z\|\S+Z\|0\|0\|0\|1\|1\|1\|ranking$/);
    // It has a prompt that runs, so the idle schedule does not hold.
    expect(bot).toMatch(/^checkout-bot\|up\|-\|\S+Z\|\d{4}-01-01T00:00:00Z\|0\|1\|0\|1\|0\|0\|-$/);

    expect(await json('projects', '--state', 'down')).toMatchObject([
      { project: 'search', up: false, failures_24h: 1, team: 'ranking' },
    ]);
    expect(await json('projects', '--team', 'ranking')).toMatchObject([{ project: 'search' }]);
    expect(await json('projects', '--team', 'other')).toEqual([]);
  });

  it('says which are paused and which were never polled', async () => {
    await withStore(async () => {});
    config = writeConfiguration(join(config, '..'), [
      { id: 'checkout-bot', paused: true },
      { id: 'search' },
      { id: 'triage', maintenance: [{ cron: '0 0 * * *', duration: '2d' }] },
    ]);
    await withStore((store) => store.configureProjects(['checkout-bot', 'search', 'triage'], NOW));
    const rows = cellsOf((await run('projects')).stdout).map((line) => line.split('|'));
    expect(rows.map(([project, state, , , next]) => [project, state, next])).toEqual([
      ['project', 'state', 'next_poll'],
      ['search', 'new', expect.stringMatching(/^20/)],
      ['checkout-bot', 'paused', '-'],
      ['triage', 'paused', expect.stringMatching(/^after 20\S+T00:00:00Z$/)],
    ]);
  });
});

describe('status', () => {
  it('prints a row per prompt, newest change first', async () => {
    await someHistory();
    const { code, stdout, stderr } = await runProcess('status');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const since = (hours: number) => `${iso(NOW - hours * HOUR).slice(0, 19)}Z`;
    expect(cellsOf(stdout.replaceAll(/  1h(?:\d+[ms])?  /g, '  1h  '))).toEqual([
      'project|prompt_id|status|since|for|usual|limit|missing|experiment|prompt_name',
      `search|prompt-1|UNKNOWN|${since(1)}|1h|-|-|0|-|-`,
      `search|prompt-3|FAILED|${since(1)}|1h|-|-|0|-|-`,
      `checkout-bot|prompt-1|RUNNING|${since(30)}|1d6h|-|4h|0|-|Refund tone`,
      `checkout-bot|prompt-2|FAILED|${since(30)}|1d6h|-|-|0|-|-`,
    ]);
  });

  it('prints the typical duration and the learned, default, configured or disabled limit', async () => {
    const day = dayOf(NOW);
    const expected = { max_pending: 'off', max_running: '90s' };
    config = writeConfiguration(join(config, '..'), [
      { id: 'checkout-bot', expect: expected },
      { id: 'search' },
    ]);
    await withStore(async (store) => {
      const durations = Array.from({ length: 10 }, (_, ago): AddedDurations => {
        return { status: 'RUNNING', day: day - 1 - ago, bucket: 40, count: 3 };
      });
      await commit(
        store,
        'search',
        NOW - 2 * HOUR,
        { slow: 'RUNNING', queued: 'PENDING' },
        'prompt',
        durations,
      );
      await commit(store, 'checkout-bot', NOW - HOUR, { slow: 'RUNNING', queued: 'PENDING' });
    });
    const { stdout } = await run('status');
    const cells = cellsOf(stdout).map((row) => row.split('|'));
    expect(
      cells
        .slice(1)
        .map(([project, , status, , , usual, limit]) => [project, status, usual, limit].join(' ')),
    ).toEqual([
      'checkout-bot PENDING - off',
      'checkout-bot RUNNING - 1m30s',
      'search PENDING - 1h',
      'search RUNNING 4m10s 22m25s',
    ]);
    expect(await json('status')).toMatchObject([
      { limit_seconds: null, limit_source: 'off', typical_seconds: null },
      { limit_seconds: 90, limit_source: 'configured', typical_seconds: null },
      { limit_seconds: 3600, limit_source: 'default', typical_seconds: null },
      { limit_seconds: 1345, limit_source: 'learned', typical_seconds: 250 },
    ]);
  });

  it('prints the time of a prompt beyond its limit in red and fits the terminal', async () => {
    await withStore((store) =>
      commit(store, 'search', NOW - 2 * HOUR, { a: 'PENDING', b: 'RUNNING' }),
    );
    vi.stubEnv('TERM', 'xterm');
    vi.stubEnv('NO_COLOR', undefined);
    onTestFinished(() => void vi.unstubAllEnvs());
    const { stdout } = await commandLine(['status', '--config', config], 80);
    const lines = stripVTControlCharacters(stdout).trimEnd().split('\n');
    expect(lines[0]).toMatch(
      /^project +prompt_id +status +for +usual +limit +missing +prompt_name$/,
    );
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(80);
    const marked = stdout.replaceAll('\u001b[31m', '<red>');
    expect(marked).toMatch(/ <red>2h/);
    expect(marked).toMatch(/ 2h(?:\d+s)? +- +4h /);
  });

  it.each([
    ['--status failed', 'prompt-3 prompt-2'],
    ['--since 24h', 'prompt-1 prompt-3'],
    ['--since 1d6h30m --project checkout-bot', 'prompt-1 prompt-2'],
    ['--limit 1', 'prompt-1'],
    ['--prompt prompt-3', 'prompt-3'],
    ['--status COMPLETED', ''],
  ])('prints for the options %s the prompts %s', async (options, ids) => {
    await someHistory();
    const rows = (await json('status', ...options.split(' '))) as { prompt_id: string }[];
    expect(rows.map((row) => row.prompt_id).join(' ')).toBe(ids);
  });

  it('escapes control characters in the table and preserves them in JSON', async () => {
    const name = 'x\n\u001b[2J\u202e\u0085';
    await withStore((store) =>
      commit(store, 'search', NOW, { 'a\tb': { status: 'RUNNING', name } }),
    );
    const { stdout } = await run('status');
    expect(stdout).toMatch(/^[ -~\n]*$/);
    expect(stdout.split('\n')).toHaveLength(3);
    expect(await json('status')).toMatchObject([{ prompt_id: 'a\tb', prompt_name: name }]);
  });
});

describe('transitions', () => {
  it('prints the newest first with --json, each with a prompt_id or a dataset_id', async () => {
    const { ids } = await someHistory();
    const rows = (await json('transitions')) as { transition_id: number }[];
    expect(rows.map((row) => row.transition_id)).toEqual(ids.toReversed());
    expect(rows).toContainEqual({
      transition_id: ids[2],
      time: iso(NOW - 20 * HOUR),
      project: 'checkout-bot',
      experiment: null,
      dataset_id: 'data-1',
      from: 'PENDING',
      to: 'FAILED',
    });
    expect(rows).toContainEqual({
      transition_id: ids.at(-1),
      time: iso(NOW - HOUR),
      project: 'search',
      experiment: null,
      prompt_id: 'prompt-3',
      from: 'NEW',
      to: 'FAILED',
    });
  });

  it('prints a table with the kind of each item, filtered by --since and --project', async () => {
    const { ids } = await someHistory();
    const options = ['--since', '24h', '--project', 'checkout-bot'];
    const { code, stdout } = await run('transitions', ...options);
    expect(code).toBe(0);
    const time = `${iso(NOW - 20 * HOUR).slice(0, 19)}Z`;
    expect(cellsOf(stdout)).toEqual([
      'transition_id|time|from|to|project|kind|id',
      `${ids[2]}|${time}|PENDING|FAILED|checkout-bot|dataset|data-1`,
    ]);
  });
});

describe('the newest rows', () => {
  it.each(['failures', 'transitions'])(
    'of %s are 100 without --limit, and stderr says if there are more',
    async (command) => {
      const shown = (status: string, count: number) =>
        Object.fromEntries(Array.from({ length: count }, (_, index) => [`x${index}`, status]));
      await withStore(async (store) => {
        await commit(store, 'search', NOW - 3 * HOUR, shown('RUNNING', 101));
        await commit(store, 'search', NOW - 2 * HOUR, shown('FAILED', 100));
      });
      const rowsOf = async (...args: string[]) => {
        const { code, stdout, stderr } = await run(command, '--json', ...args);
        return { code, stderr, rows: (JSON.parse(stdout) as readonly unknown[]).length };
      };
      expect(await rowsOf()).toEqual({ code: 0, stderr: '', rows: 100 });
      await withStore((store) => commit(store, 'search', NOW - HOUR, shown('FAILED', 101)));
      expect(await rowsOf()).toEqual({
        code: 0,
        stderr: `note: these are the newest 100 ${command}, and there are more: print another number with --limit\n`,
        rows: 100,
      });
      expect(await rowsOf('--limit', '101')).toEqual({ code: 0, stderr: '', rows: 101 });
      expect(await rowsOf('--limit', '2')).toEqual({ code: 0, stderr: '', rows: 2 });
    },
  );
});

describe('failures', () => {
  const RATE_LIMITED = { error_id: 'RATE_LIMITED', error_msg: 'slow down\nplease' };

  async function someFailures() {
    return withStore(async (store) => {
      await commit(store, 'search', NOW - 3 * HOUR, { a: 'RUNNING', b: 'RUNNING', c: 'RUNNING' });
      const shown = { a: { status: 'FAILED', name: 'Refund\ttone' }, b: 'FAILED', c: 'FAILED' };
      const [a = 0, b = 0, c = 0] = await commit(store, 'search', NOW - 2 * HOUR, shown);
      await settle(store, a, { errorInfo: RATE_LIMITED, errorMsgTruncated: true }, NOW - HOUR);
      await settle(store, b, { reason: 'not_found' }, NOW - HOUR);
      return { a, b, c };
    });
  }

  it('prints error_info, the reason for its absence, or settled: false with --json', async () => {
    const { a, b, c } = await someFailures();
    const rows = (await json('failures')) as readonly { readonly prompt_id: string }[];
    expect(rows.toSorted((x, y) => x.prompt_id.localeCompare(y.prompt_id))).toMatchObject([
      {
        transition_id: a,
        prompt_name: 'Refund\ttone',
        error_info: RATE_LIMITED,
        error_msg_truncated: true,
        cause: causeOf(RATE_LIMITED).id,
      },
      { transition_id: b, error_info: null, reason: 'not_found', settled: true },
      { transition_id: c, error_info: null, reason: null, settled: false, cause: null },
    ]);
  });

  it('prints one line per failure', async () => {
    await someFailures();
    const { stdout } = await run('failures');
    const lines = stdout.trimEnd().split('\n');
    expect(lines).toHaveLength(4);
    expect(lines[0]).toMatch(/ prompt_id +prompt_name +settled /);
    expect(
      lines.some((line) =>
        / a +Refund\\ttone +yes +- +RATE_LIMITED +slow down\\nplease$/.test(line),
      ),
    ).toBe(true);
    expect(lines.some((line) => / b +- +yes +not_found +- +-$/.test(line))).toBe(true);
    expect(lines.some((line) => / c +- +no +- +- +-$/.test(line))).toBe(true);
  });

  it('prints CSV with escaped formulas and control characters, or only the header without a match', async () => {
    const { a, b, c } = await someFailures();
    const hostile = { error_id: '=1+1', error_msg: '"a", \u001b[2J' };
    await withStore((store) =>
      settle(store, c, { errorInfo: hostile, errorMsgTruncated: false }, NOW),
    );
    const { stdout, stderr } = await run('failures', '--format', 'csv');
    const [header, ...lines] = stdout.split('\r\n');
    const time = iso(NOW - 2 * HOUR);
    expect(stderr).toBe('');
    expect(header).toBe(
      'transition_id,time,project,prompt_id,prompt_name,settled,reason,error_id,error_msg,error_msg_truncated,cause,experiment',
    );
    expect(new Set(lines)).toEqual(
      new Set([
        `${a},${time},search,a,Refund\\ttone,true,,RATE_LIMITED,slow down\\nplease,true,${causeOf(RATE_LIMITED).id},`,
        `${b},${time},search,b,,true,not_found,,,false,${causeOf(undefined).id},`,
        `${c},${time},search,c,,true,,'=1+1,"""a"", \\u001b[2J",false,${causeOf(hostile).id},`,
        '',
      ]),
    );
    expect(await run('failures', '--cause', '0123456789abcdef', '--format', 'csv')).toMatchObject({
      code: 0,
      stdout: `${header}\r\n`,
      stderr: '',
    });
  });

  it('prints only the failures of the cause given with --cause', async () => {
    const { a } = await someFailures();
    const { id } = causeOf(RATE_LIMITED);
    expect(await json('failures', '--cause', id.toUpperCase())).toMatchObject([
      { transition_id: a, cause: id },
    ]);
    expect(await run('failures', '--cause', '0123456789abcdef')).toMatchObject({
      code: 0,
      stdout: '',
      stderr: 'no failures match; prompts that had failed before the first poll have none\n',
    });
  });
});

describe('causes', () => {
  const errorInfo = (n: number) => ({
    error_id: 'PARSE\u202e',
    error_msg: `Row ${n} of \u001b "out${n}"`,
  });
  const { id, shape } = causeOf(errorInfo(1));

  /** Stores failures of 30 h, 2 h and 1 h ago. */
  function someCauses() {
    return withStore(async (store) => {
      async function fail(project: string, hours: number, shown: Shown) {
        const ids = await commit(store, project, NOW - hours * HOUR, shown);
        for (const transition of ids) {
          const settlement = { errorInfo: errorInfo(transition), errorMsgTruncated: false };
          await settle(store, transition, settlement, NOW);
        }
        return ids;
      }
      await commit(store, 'search', NOW - 40 * HOUR, {});
      await commit(store, 'checkout-bot', NOW - 40 * HOUR, {});
      const old = await fail('search', 30, { a: 'FAILED' });
      const young = await fail('checkout-bot', 2, { a: 'FAILED', b: 'FAILED' });
      const shown = { a: 'FAILED', b: 'FAILED', c: 'FAILED' };
      const [rare = 0] = await commit(store, 'checkout-bot', NOW - HOUR, shown);
      await settle(store, rare, { reason: 'not_found' }, NOW);
      return { ids: [...old, ...young], rare };
    });
  }

  it('prints the causes of the last 24 hours with --json, the most frequent first', async () => {
    const { ids, rare } = await someCauses();
    const rows = (await json('causes')) as readonly unknown[];
    expect(rows).toMatchObject([
      { cause: id, shape, count: 2, projects: 1, is_new: false, transition_id: ids.at(-1) },
      { cause: causeOf(undefined).id, count: 1, is_new: true, transition_id: rare },
    ]);
    expect(await json('causes', '--since', '90m')).toEqual([rows[1]]);
    expect(await json('causes', '--since', '7d')).toMatchObject([
      { cause: id, count: 3, projects: 2, is_new: true },
      { count: 1 },
    ]);
    expect(await json('causes', '--project', 'checkout-bot')).toMatchObject([
      { cause: id, count: 2, is_new: true },
      { count: 1 },
    ]);
    expect(await json('causes', '--project', 'search')).toEqual([]);
    expect(await json('causes', '--experiment', 'nobody')).toEqual([]);
  });

  it('prints one line per cause and one line for all causes beyond --limit', async () => {
    await someCauses();
    const { stdout } = await run('causes', '--limit', '1');
    const [header = '', cause = '', other = '', ...more] = stdout.trimEnd().split('\n');
    expect(header.split(/ +/).join(' ')).toBe(
      'count projects new first_seen last_seen cause error_id shape last_error_msg',
    );
    expect(cause).toMatch(
      new RegExp(`^2 +1 +no .* ${id}  PARSE\\\\u202e  Row <\\*> of <\\*>  Row`),
    );
    expect(cause).toMatch(/^[ -~]+$/);
    expect(other).toMatch(/^1 +- +- +- +- +other +- +- +-$/);
    expect(more).toEqual([]);
  });
});

describe('experiments', () => {
  const WEIRD = '=cmd\u202e \u001b[31m';
  const COUNTS = { PENDING: 0, RUNNING: 0, COMPLETED: 0, FAILED: 0, UNKNOWN: 0 };

  /** Lets `nightly` of checkout-bot finish after 41 minutes, and prompts of other experiments and of none move later. */
  beforeEach(() =>
    withStore(async (store) => {
      const end = { a: ['COMPLETED', 'nightly'], b: ['FAILED', 'nightly'] } as const;
      const poll = (items: Items, at: number) => pollItems(store, 'checkout-bot', items, at);
      await poll(
        { a: ['RUNNING', 'nightly'], b: ['RUNNING', 'nightly'], c: ['RUNNING'] },
        NOW - 9 * HOUR,
      );
      await poll({ a: ['COMPLETED', 'nightly'], b: ['RUNNING', 'nightly'] }, NOW - 8 * HOUR);
      await poll(end, NOW - 8 * HOUR + 41 * 60_000 + 2500);
      await poll(end, NOW - 7 * HOUR);
      await pollItems(store, 'search', { d: ['RUNNING', WEIRD], e: ['RUNNING'] }, NOW - 2 * HOUR);
      await pollItems(store, 'search', { d: ['FAILED', WEIRD], e: ['FAILED'] }, NOW - HOUR);
    }),
  );

  it('prints a row for each, the last move first', async () => {
    const { code, stdout, stderr } = await runProcess('experiments');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const time = (ms: number) => `${iso(ms).slice(0, 19)}Z`;
    const moved = time(NOW - 8 * HOUR + 41 * 60_000 + 2500);
    expect(cellsOf(stdout)).toEqual([
      'project|state|PENDING|RUNNING|COMPLETED|FAILED|UNKNOWN|first_move|last_move|took|experiment',
      `search|ended|0|0|0|1|0|${time(NOW - HOUR)}|${time(NOW - HOUR)}|-|=cmd\\u202e \\u001b[31m`,
      `checkout-bot|finished|0|0|1|1|0|${time(NOW - 8 * HOUR)}|${moved}|41m2s|nightly`,
    ]);
  });

  it('prints the rows of the API with --json, of one project, one name or the last time', async () => {
    const nightly = {
      project: 'checkout-bot',
      experiment: 'nightly',
      state: 'finished',
      prompts: { ...COUNTS, COMPLETED: 1, FAILED: 1 },
      first_move: iso(NOW - 8 * HOUR),
      last_move: iso(NOW - 8 * HOUR + 41 * 60_000 + 2500),
      ended: iso(NOW - 8 * HOUR + 41 * 60_000 + 2500),
      finished: iso(NOW - 7 * HOUR),
      duration_seconds: 2462.5,
    };
    expect(await json('experiments', '--project', 'checkout-bot')).toEqual([nightly]);
    expect(await json('experiments', '--experiment', 'nightly')).toEqual([nightly]);
    expect(await json('experiments', '--since', '2h')).toMatchObject([{ experiment: WEIRD }]);
    expect(await json('experiments', '--limit', '1')).toMatchObject([{ experiment: WEIRD }]);
  });

  it('says that there are none', async () => {
    const matched = await run('experiments', '--experiment', 'nobody');
    expect(matched).toMatchObject({ code: 0, stdout: '', stderr: 'no experiments match\n' });
  });

  it.each<[command: string, experiment: string, ids: string]>([
    ['status', 'nightly', 'a b'],
    ['status', '', 'e'],
    ['transitions', 'nightly', 'a b'],
    ['transitions', '', 'e'],
    ['failures', 'nightly', 'b'],
    ['failures', '', 'e'],
    ['export', WEIRD, 'd'],
    ['export', '', 'e'],
  ])('restricts %s by --experiment %j to %s', async (command, experiment, ids) => {
    const asJson = command === 'export' ? [] : ['--json'];
    const { code, stdout } = await run(command, '--experiment', experiment, ...asJson);
    expect(code).toBe(0);
    const found = Array.from(stdout.matchAll(/"prompt_id":"(\w)"/g), ([, id]) => id);
    expect(new Set(found)).toEqual(new Set(ids.split(' ')));
  });
});

describe('a command that reads the store', () => {
  it.each([
    ['status', [], 'no prompts recorded\n'],
    ['transitions', [], 'no transitions recorded\n'],
    [
      'failures',
      ['--project', 'search'],
      'no failures match; prompts that had failed before the first poll have none\n',
    ],
    ['causes', [], 'no causes match\n'],
  ])('prints a message if nothing is found: %s %j', async (command, options, sentence) => {
    await withStore(async () => {});
    const empty = await run(command, ...options);
    expect(empty).toMatchObject({ code: 0, stdout: '', stderr: sentence });
    expect(await json(command, ...options)).toEqual([]);
  });

  it('accepts project ids of the configuration and of the store, and rejects others', async () => {
    await withStore((store) => store.configureProjects(['retired'], NOW));
    const outcomes = [];
    for (const project of ['checkout-bot', 'retired', 'retird', 'no-such-thing']) {
      const { code, stderr } = await run('failures', '--project', project, '--json');
      outcomes.push([code, stderr]);
    }
    expect(outcomes).toEqual([
      [0, ''],
      [0, ''],
      [2, 'error: unknown project "retird", did you mean "retired"?\n'],
      [
        2,
        'error: unknown project "no-such-thing"; known projects are "checkout-bot", "search", "retired"\n',
      ],
    ]);
  });

  it('names ten known projects and the number of others if the project id is unknown', async () => {
    const stored = Array.from({ length: 10 }, (_, n) => `stored-${n}`);
    const known = ['checkout-bot', 'search', ...stored];
    await withStore((store) => store.configureProjects(known, NOW));
    const listed = known.slice(0, 10).map((id) => `"${id}"`);
    expect(await run('failures', '--project', 'no-such-thing')).toMatchObject({
      code: 2,
      stderr: `error: unknown project "no-such-thing"; known projects are ${listed.join(', ')} and 2 more\n`,
    });
  });

  it('says that a store has no projects if it has none', async () => {
    const store = await openStoreInProcess({ path: database, clock: systemClock, emit: () => {} });
    await store.close();
    expect(await commandLine(['failures', '--store', database, '--project', 'x'])).toMatchObject({
      code: 2,
      stderr: 'error: unknown project "x": the store has no projects\n',
    });
  });

  it('exits 1, creates no store and names the configuration if no store exists', async () => {
    const { code, stdout, stderr } = await run('status');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^error: there is no store at [^\n]*evalwatch\.db: [^\n]*\n$/);
    expect(stderr).toContain(`The path is from ${config}; `);
    vi.stubEnv('EVALWATCH_STORE_PATH', database);
    onTestFinished(() => void vi.unstubAllEnvs());
    expect((await run('status')).stderr).toContain('The path is from EVALWATCH_STORE_PATH; ');
    expect(existsSync(database)).toBe(false);
  });

  it('runs without an API key', async () => {
    await withStore(async () => {});
    rmSync(join(config, '../key'));
    expect(await run('status')).toMatchObject({ code: 0 });
  });
});

describe('status of 3,000 prompts', () => {
  /** Several times the rows that a pipe holds. */
  const count = 3000;
  beforeEach(async () => {
    const shown = Object.fromEntries(
      Array.from({ length: count }, (_, index) => [`prompt-${index}`, 'RUNNING']),
    );
    await withStore((store) => commit(store, 'search', NOW, shown));
  });

  it('writes every row to a slow reader', async () => {
    const child = spawn(process.execPath, [ENTRY, 'status', '--config', config, '--json'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    const exit = once(child, 'exit');
    let text = '';
    for await (const chunk of child.stdout) {
      text += String(chunk);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(JSON.parse(text)).toHaveLength(count);
    expect(await exit).toEqual([0, null]);
  });
});
