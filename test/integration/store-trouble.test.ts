import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, vi } from 'vitest';
import { brokenSqlite } from '../support/broken-sqlite.ts';
import { readHere, startHere } from '../support/daemon-here.ts';
import {
  ON_REQUEST,
  PATIENCE,
  pollNow,
  RECEIVER,
  startDaemon,
  UNHURRIED,
  workspace,
} from '../support/evalwatch.ts';
import { METRICS } from '../support/metrics-table.ts';
import { scrape } from '../support/scrape.ts';
import { errorOf, startAlpha } from '../support/service.ts';

/** A way to make the disk of a daemon unwritable and writable again. */
interface Disk {
  readonly name: string;
  /** Reason of the failing commits. */
  readonly reason: string;
  /** Makes the directory of the store. Returns a function that undoes that. */
  readonly prepare: (directory: string) => Promise<() => void>;
  readonly fill: (directory: string, pid: number) => Promise<void>;
  readonly free: (directory: string, pid: number) => Promise<void>;
}

function run(program: string, ...args: readonly string[]): boolean {
  return spawnSync(program, args).status === 0;
}

const small: Disk = {
  name: 'a disk that is full',
  reason: 'full',
  prepare: async (directory) => {
    await mkdir(directory);
    run('mount', '-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', directory);
    return () => void run('umount', '--lazy', directory);
  },
  fill: async (directory) => {
    const filler = Buffer.alloc(1024 * 1024);
    await writeFile(join(directory, 'filler'), filler).catch(() => {});
  },
  free: (directory) => rm(join(directory, 'filler')),
};

/** Limits the size of written files, which needs no privileges. */
const limited: Disk = {
  name: 'a disk that takes no byte',
  reason: 'io',
  prepare: async (directory) => {
    await mkdir(directory);
    return () => {};
  },
  fill: async (_, pid) => void run('prlimit', '--pid', `${pid}`, '--fsize=1:'),
  free: async (_, pid) => void run('prlimit', '--pid', `${pid}`, '--fsize=unlimited:'),
};

/** Whether this process may mount a file system, tried in a namespace of its own. */
const mayMount = run('unshare', '--mount', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt');
const project = 'alpha';

describe('a store that cannot be written', UNHURRIED, () => {
  it.for([limited, small])(
    'because of $name fails polls, keeps the daemon running, and recovers without loss',
    async ({ reason, prepare, fill, free }, { skip }) => {
      if (reason === small.reason && !mayMount) skip('nothing can be mounted here');
      await using service = await startAlpha();
      service.set({ p1: 'RUNNING', p2: 'PENDING' });
      await using place = await workspace(service.url, {
        ...ON_REQUEST,
        store: { path: 'disk/evalwatch.db' },
      });
      const directory = join(place.directory, 'disk');
      const remove = await prepare(directory);
      try {
        await using daemon = startDaemon(place);
        await daemon.line('poll.completed');
        const url = await daemon.url();
        const pid = daemon.process.pid ?? 0;
        const seen = async () => {
          const scraped = await scrape(url);
          expect(scraped.status).toBe(200);
          const value = (name: string, labels = {}) => scraped.value(name, labels);
          return {
            up: value('evalwatch_project_up', { project }),
            lastSuccess: value('evalwatch_poll_last_success_timestamp_seconds', { project }) ?? NaN,
            inARow: value('evalwatch_project_consecutive_poll_failures', { project }),
            failed: value('evalwatch_poll_failures_total', { project, reason: 'store' }) ?? NaN,
            commits: value('evalwatch_store_commit_failures_total', { reason }),
            running: value('evalwatch_prompts', { project, status: 'RUNNING' }),
            backlog: value('evalwatch_error_info_backlog'),
          };
        };

        await fill(directory, pid);
        const failToPoll = () =>
          vi.waitFor(
            async () => expect(await pollNow(url)).toMatchObject([{ ok: false, reason: 'store' }]),
            PATIENCE,
          );
        // A poll that changes nothing is stored after its end, so only the next one fails.
        await failToPoll();
        await daemon.line('store.commit_failed', { level: 'error', reason });
        await daemon.line('poll.failed', { reason: 'store' });
        const down = await seen();
        expect(down.up).toBe(0);
        await failToPoll();
        // A poll that cannot be stored is no success, though its listing was read.
        expect((await seen()).lastSuccess).toBe(down.lastSuccess);

        service.set({ p1: 'FAILED' });
        await failToPoll();
        const { inARow, failed, commits, running } = await seen();
        expect([inARow, running]).toEqual([failed, 1]);
        expect(failed).toBeGreaterThan(2);
        expect(commits).toBeGreaterThanOrEqual(failed);
        // Commit, then emit: what is not stored is not logged.
        expect(daemon.of('prompt.transition')).toEqual([]);
        expect(daemon.of('prompt.failed')).toEqual([]);
        expect((await fetch(`${url}/-/healthy`)).status).toBe(200);

        service.set({ p1: 'RUNNING', p2: 'RUNNING' });
        await failToPoll();
        service.set({ p1: 'FAILED' });
        await free(directory, pid);
        expect(await pollNow(url)).toMatchObject([{ ok: true }]);
        await daemon.line('poll.recovered');
        await daemon.line('prompt.failed', { prompt_id: 'p1' });
        await vi.waitFor(
          async () => expect(await seen()).toMatchObject({ up: 1, backlog: 0 }),
          PATIENCE,
        );
        expect((await seen()).lastSuccess).toBeGreaterThan(down.lastSuccess);
        expect(await daemon.stop()).toMatchObject({ code: 0 });
        expect(daemon.of('prompt.failed')).toMatchObject([{ error_info: errorOf('p1') }]);
        const rows = (await readHere(place, ['transitions', '--json'])).json();
        expect(
          rows.toSorted((a, b) => (String(a['prompt_id']) < String(b['prompt_id']) ? -1 : 1)),
        ).toMatchObject([
          { prompt_id: 'p1', from: 'RUNNING', to: 'FAILED' },
          { prompt_id: 'p2', from: 'PENDING', to: 'RUNNING' },
        ]);
      } finally {
        remove();
      }
    },
  );
});

describe('a store that is moved away or replaced', UNHURRIED, () => {
  async function startWithStore(place: Awaited<ReturnType<typeof workspace>>) {
    const daemon = await startHere(place);
    await daemon.line('poll.completed');
    const url = await daemon.url();
    return { daemon, url, ready: async () => (await fetch(`${url}/-/ready`)).status };
  }

  it('makes the daemon unready and fails its polls until it is back', async () => {
    await using service = await startAlpha();
    service.set({ p1: 'RUNNING' });
    await using place = await workspace(service.url, { store: { path: 'data/evalwatch.db' } });
    const { daemon, url, ready } = await startWithStore(place);
    await using _ = daemon;
    expect(await ready()).toBe(200);
    const [data, elsewhere] = [join(place.directory, 'data'), join(place.directory, 'elsewhere')];

    await rename(data, elsewhere);
    service.set({ p1: 'FAILED' });
    await daemon.line('poll.failed', { reason: 'store' });
    const line = await daemon.line('store.commit_failed', { level: 'error', reason: 'replaced' });
    expect(line['err']).toMatchObject({ message: expect.stringContaining('evalwatch.db is no') });
    await vi.waitFor(async () => expect(await ready()).toBe(503), PATIENCE);
    const down = await scrape(url);
    expect(
      down.value('evalwatch_store_commit_failures_total', { reason: 'replaced' }),
    ).toBeGreaterThan(0);
    expect(down.value('evalwatch_project_up', { project })).toBe(0);
    expect(down.value('evalwatch_prompts', { project, status: 'RUNNING' })).toBe(1);
    expect((await fetch(`${url}/-/healthy`)).status).toBe(200);
    expect(daemon.of('prompt.transition')).toEqual([]);

    await rename(elsewhere, data);
    await daemon.line('poll.recovered');
    await daemon.line('prompt.failed', { prompt_id: 'p1' });
    await vi.waitFor(async () => expect(await ready()).toBe(200), PATIENCE);
    expect(daemon.of('prompt.transition')).toHaveLength(1);
  });

  it('is used from the next restart on, which finds the transition that was not stored', async () => {
    await using service = await startAlpha();
    service.set({ p1: 'RUNNING' });
    await using place = await workspace(service.url);
    const file = join(place.directory, 'evalwatch.db');
    const { daemon } = await startWithStore(place);
    await using _ = daemon;
    const backup = join(place.directory, 'backup.db');
    await readHere(place, ['backup', backup]);
    await rename(backup, file);
    service.set({ p1: 'FAILED' });
    await daemon.line('poll.failed', { reason: 'store' });
    await daemon.stop();
    expect(daemon.of('prompt.transition')).toEqual([]);

    await using next = await startHere(place);
    await next.line('prompt.failed', { prompt_id: 'p1' });
    expect(next.of('prompt.transition')).toMatchObject([{ from: 'RUNNING', to: 'FAILED' }]);
  });
});

describe('a store that cannot be read', UNHURRIED, () => {
  /** Hides every table of a store, or shows them again. */
  function renameTables(file: string, from: RegExp, to: string): void {
    const db = new Database(file);
    const tables = db
      .prepare<[], { name: string }>(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
      )
      .all();
    db.transaction(() => {
      for (const { name } of tables) {
        db.exec(`ALTER TABLE "${name}" RENAME TO "${name.replace(from, to)}"`);
      }
    }).immediate();
    db.close();
  }

  it('leaves process metrics and poll health in the scrape, and recovers', async () => {
    await using service = await startAlpha();
    service.set({ p1: 'RUNNING' });
    await using place = await workspace(service.url, {
      web: { external_url: 'https://watch.example.com' },
      notify: [RECEIVER],
    });
    await using daemon = await startHere(place);
    await daemon.line('poll.completed');
    const url = await daemon.url();
    const file = join(place.directory, 'evalwatch.db');

    renameTables(file, /^/, 'hidden_');
    service.set({ p1: 'FAILED' });
    await daemon.line('poll.failed', { reason: 'store' });
    const down = await scrape(url);
    const again = await scrape(url);
    expect(down.status).toBe(200);
    expect(down.value('evalwatch_project_up', { project })).toBe(0);
    expect(down.value('evalwatch_project_consecutive_poll_failures', { project })).toBeGreaterThan(
      0,
    );
    expect(down.value('evalwatch_project_poll_failing', { project, reason: 'store' })).toBe(1);
    const fromMemory = new Set([
      'evalwatch_project_up',
      'evalwatch_project_consecutive_poll_failures',
      'evalwatch_project_poll_failing',
      'evalwatch_prompt_state_limit_seconds',
    ]);
    // No project is paused.
    const always = METRICS.filter((each) => each.name !== 'evalwatch_project_paused');
    for (const { name, from } of always) {
      const lacks = from === 'store' && !fromMemory.has(name);
      expect([name, down.families.has(name)]).toEqual([name, !lacks]);
    }
    expect(down.value('process_resident_memory_bytes')).toBeGreaterThan(0);
    const failures = (seen: typeof down) =>
      [...seen.samples]
        .filter(([name]) => name.startsWith('evalwatch_store_commit_failures_total'))
        .reduce((sum, [, value]) => sum + value, 0);
    expect(failures(again)).toBeGreaterThan(failures(down));
    await daemon.line('store.commit_failed');
    expect((await fetch(`${url}/-/healthy`)).status).toBe(200);

    renameTables(file, /^hidden_/, '');
    await daemon.line('poll.recovered');
    await daemon.line('prompt.failed');
    const up = await vi.waitFor(async () => {
      const seen = await scrape(url);
      expect(seen.value('evalwatch_error_info_backlog')).toBe(0);
      return seen;
    }, PATIENCE);
    expect(up.value('evalwatch_project_up', { project })).toBe(1);
    const transitions = 'evalwatch_prompt_transitions_total';
    expect(up.value(transitions, { project, from: 'RUNNING', to: 'FAILED' })).toBe(1);
    expect(daemon.of('prompt.failed')).toHaveLength(1);
  });
});

describe('an unexpected error while the store is read', UNHURRIED, () => {
  it('ends the daemon with its message and is not logged as a failure of the store', async () => {
    await using service = await startAlpha();
    await using place = await workspace(service.url, { schedule: '0 0 1 1 *' });
    const flag = join(place.directory, 'buggy');
    const args = brokenSqlite(flag, /AS pending$/, 'bug');
    await using daemon = startDaemon(place, { args });
    await daemon.line('poll.completed');
    const url = await daemon.url();
    await writeFile(flag, '');
    await fetch(`${url}/metrics`).catch(() => undefined);
    const { code } = await daemon.ended;
    expect(code).toBe(1);
    expect((await daemon.line('daemon.crashed'))['err']).toMatchObject({
      type: 'TypeError',
      message: 'a bug in the store',
    });
    expect(daemon.of('store.commit_failed')).toEqual([]);
  });
});

describe('a store that is busy with a large commit', UNHURRIED, () => {
  it('answers pages, the API and scrapes after it, and is alive meanwhile', async () => {
    await using service = await startAlpha();
    service.set({ p0: 'RUNNING' });
    await using place = await workspace(service.url, ON_REQUEST);
    const flag = join(place.directory, 'busy');
    await using daemon = startDaemon(place, {
      args: brokenSqlite(flag, /^INSERT INTO record\b/, 'hang'),
    });
    const url = await daemon.url();
    await daemon.line('project.baseline');

    await writeFile(flag, '');
    service.set(Object.fromEntries(Array.from({ length: 10_500 }, (_, n) => [`p${n}`, 'RUNNING'])));
    const polled = pollNow(url);
    await vi.waitFor(() => expect(existsSync(`${flag}.hangs`)).toBe(true), PATIENCE);
    const paths = ['/', '/projects/alpha', '/api/v1/projects', '/api/v1/transitions'];
    const answers = paths.map(async (path) => [path, (await fetch(url + path)).status]);
    expect((await fetch(`${url}/-/healthy`)).status).toBe(200);

    await rm(flag);
    expect(await Promise.all(answers)).toEqual(paths.map((path) => [path, 200]));
    expect(await polled).toMatchObject([{ ok: true }]);
    const after = await scrape(url);
    expect(after.value('evalwatch_prompts', { project, status: 'RUNNING' })).toBe(10_500);
    expect(after.value('evalwatch_error_info_backlog')).toBe(0);
    expect(await daemon.stop()).toMatchObject({ code: 0 });
    expect(existsSync(join(place.directory, 'evalwatch.db-wal'))).toBe(false);
  });
});
