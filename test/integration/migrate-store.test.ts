import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { IN_CI } from '../support/debian-tool.ts';
import { systemClock } from '../../src/app/clock.ts';
import { KINDS } from '../../src/domain/status.ts';
import type { Store } from '../../src/monitor/ports/store.ts';
import { PostgresDatabase } from '../../src/store/postgres/database.ts';
import { migrate } from '../../src/store/postgres/sql/migrate.ts';
import { openPostgresReader } from '../../src/store/postgres/postgres-reader.ts';
import { readUrl } from '../../src/store/postgres/url.ts';
import { openReader } from '../../src/store/sqlite/sqlite-reader.ts';
import { openStore, type SqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { HARD_TEXTS } from '../contract/store/harness.ts';
import { PATIENCE } from '../support/evalwatch.ts';
import {
  PASSWORD,
  postgresPrograms,
  type PostgresServer,
  startPostgres,
} from '../support/postgres.ts';
import { startWorker } from '../support/postgres-store.ts';
import { pollItems } from '../support/experiments.ts';
import { commandLine, type Finished } from '../support/command-line.ts';
import { ENTRY } from '../support/entry.ts';
import { temporaryDirectory, writeConfiguration } from '../unit/cli/configuration-file.ts';
import { see } from '../unit/store/sqlite/history.ts';
import { withCause } from '../support/failures.ts';

const REMOVED = 'a removed \u0001"project"';
const PROJECTS = ['p', 'q', 'r', 'never polled'];
const TABLES = ['project', 'record', 'experiment', 'finish', 'transition', 'failure', 'settlement'];

/** Writes a store with rows of every kind, as a daemon leaves it. */
async function writeStore(path: string): Promise<void> {
  const store = await openStore({ path, clock: systemClock, emit: () => {} });
  await store.configureProjects([...PROJECTS, REMOVED, 'pruned'], 1);
  await see(store, 'pruned', { a: 'RUNNING' }, 5);
  await see(store, 'pruned', { a: 'FAILED' }, 6);
  const hard = (status: string) => Object.fromEntries(HARD_TEXTS.map((id) => [id, status]));
  await see(store, 'p', { ...hard('RUNNING'), gone: 'PENDING', missing: 'RUNNING' }, 10);
  await see(store, 'p', { d: 'FAILED', e: 'paused' }, 10, 'dataset');
  await see(store, REMOVED, { a: 'RUNNING' }, 15);
  await see(store, REMOVED, { a: 'FAILED' }, 16);
  for (const at of [20, 30, 40]) {
    await see(store, 'p', { ...hard('RUNNING'), 'new one': 'on hold', missing: 'RUNNING' }, at);
  }
  await see(store, 'p', { ...hard('FAILED'), 'new one': 'PENDING' }, 50);
  await see(store, 'p', { d: 'RUNNING', e: 'paused' }, 50, 'dataset');
  await see(store, 'q', { a: 'PENDING', b: 'COMPLETED' }, 60);
  await finish(store, 65);
  await store.configureProjects([...PROJECTS, REMOVED], 70);
  await settleSome(store);
  await store.configureProjects(PROJECTS, 80);
  // Remaining rows of the pruned project are garbage, and later rows must not get the numbers of deleted ones.
  await store.prune({ before: 75, firstDay: 0 });
  await see(store, 'q', { a: 'FAILED', b: 'RUNNING' }, 90);
  await finish(store, 90);
  const pending = await store.pendingFailures({ limitPerProject: 100 });
  const newest = pending.find(({ project }) => project === 'q');
  const errorInfo = { error_id: 'E1', error_msg: 'broken \u0001' };
  if (newest === undefined) throw new Error('q has no failure');
  await store.settleFailure(newest, withCause({ errorInfo, errorMsgTruncated: false }), 95);
  await writeMessage(store);
  await store.close();
}

/** Lets an experiment of `r` finish. */
async function finish(store: Store, at: number): Promise<void> {
  for (const status of ['RUNNING', 'COMPLETED', 'COMPLETED']) {
    await pollItems(store, 'r', { x: [status, '__proto__'] }, at);
  }
}

const MESSAGE = {
  schema: 1,
  id: 'm',
  timestamp: new Date(97).toISOString(),
  type: 'test',
  data: { receiver: '\u0000' },
} as const;

/** Stores a message, and what it tells. */
async function writeMessage({ notifications }: SqliteStore): Promise<void> {
  const of = { receiver: 'chat', kind: 'stuck', project: 'q' } as const;
  await notifications.subscribe({ name: 'chat', on: ['stuck'] }, 96);
  const token = (await notifications.token(of)) ?? '';
  const told = [{ ...of, promptId: 'b', status: 'RUNNING' as const, mark: 90 }];
  await notifications.compose({ ...of, token, told, message: MESSAGE });
}

async function settleSome(store: Store): Promise<void> {
  const [one, other, tried, ...rest] = await store.pendingFailures({ limitPerProject: 100 });
  const pruned = rest.find(({ project }) => project === 'pruned');
  if (!one || !other || !tried) throw new Error('too few failures');
  const none = { reason: 'not_found' } as const;
  const errorInfo = { error_id: 'E1', error_msg: `broken \u0001 ${'x'.repeat(9000)}` };
  await store.settleFailure(other, withCause({ errorInfo, errorMsgTruncated: true }), 71);
  await store.settleFailure(one, withCause(none), 72);
  if (pruned !== undefined) await store.settleFailure(pruned, withCause(none), 73);
  const tries = { count: 2, useless: 1, firstAt: 70, lastAt: 71, nextAt: 5000 };
  await store.postponeFailure(tried, tries);
}

describe.runIf(postgresPrograms() !== undefined || IN_CI)('migrate-store', () => {
  let server: PostgresServer;
  let shared: string;
  beforeAll(async () => {
    server = await startPostgres();
    shared = await mkdtemp(join(tmpdir(), 'evalwatch-'));
    await writeStore(join(shared, 'evalwatch.db'));
  }, 60_000);
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    await rm(shared, { recursive: true });
  });

  let directory: string;
  let file: string;
  /** Configuration of the file; `config` is that of the database. */
  let before: string;
  let config: string;
  let database: { readonly name: string; readonly url: string };
  const projects = PROJECTS.map((id) => ({ id }));
  beforeEach(async () => {
    directory = temporaryDirectory();
    file = join(directory, 'evalwatch.db');
    copyFileSync(join(shared, 'evalwatch.db'), file);
    before = writeConfiguration(directory, projects);
    database = await server.createDatabase();
    const other = temporaryDirectory();
    writeFileSync(join(other, 'url'), `${database.url}\n`);
    config = writeConfiguration(other, projects, { store: { postgres_url_file: 'url' } });
  });

  const move = (): Promise<Finished> =>
    commandLine(['migrate-store', '--from', file, '--config', config, '--json']);

  async function isEmpty(): Promise<boolean> {
    const [row] = await server.query(
      database.name,
      `SELECT ${TABLES.map((table) => `NOT EXISTS (SELECT FROM evalwatch.${table})`).join(' AND ')} AS empty`,
    );
    return row?.['empty'] === true;
  }

  async function expectSameAnswers(): Promise<void> {
    await expectSameRows();
    for (const command of ['status', 'transitions', 'failures']) {
      for (const which of [[], ['--project', 'p'], ['--limit', '3']]) {
        const ask = (where: string) =>
          commandLine([command, '--json', ...which, '--config', where]);
        const [from, to] = await Promise.all([ask(before), ask(config)]);
        expect(to).toEqual(from);
        expect(JSON.parse(to.stdout)).not.toEqual([]);
      }
    }
  }

  async function expectSameRows(): Promise<void> {
    const [from, to] = await Promise.all([
      openReader({ path: file }),
      openPostgresReader({ clock: systemClock, url: database.url }),
    ]);
    try {
      expect(await to.projects()).toEqual(await from.projects());
      expect(inOrder(await to.snapshot())).toEqual(inOrder(await from.snapshot()));
      const causes = { since: 0, limit: 9 };
      expect(await to.causes(causes)).toEqual(await from.causes(causes));
      expect((await to.causes(causes)).causes).not.toEqual([]);
      const start = { transition: 0, settlement: 0, finish: 0 };
      const events = await from.events(start, 1000);
      expect(await to.events(start, 1000)).toEqual(events);
      expect(events.finishes.map(({ finishId }) => finishId)).toEqual([2]);
      expect(await to.experiments({})).toEqual(await from.experiments({}));
      expect(await to.transitions({ project: REMOVED })).toEqual(
        await from.transitions({ project: REMOVED }),
      );
    } finally {
      await Promise.all([from.close(), to.close()]);
    }
  }

  it('copies all rows once, reports how many, and refuses a store that has changed since', async () => {
    const first = await move();
    const { code, stdout, stderr } = first;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).toEqual([
      { what: 'projects', moved: 5 },
      { what: 'prompts', moved: HARD_TEXTS.length + 7 },
      { what: 'datasets', moved: 2 },
      expect.objectContaining({ what: 'transitions' }),
      expect.objectContaining({ what: 'failures' }),
      expect.objectContaining({ what: 'pending_failures' }),
    ]);
    await expectSameAnswers();
    const rows = `SELECT r.receiver, r.seen_at::integer, w.record_id, w.status, w.mark::integer, m.content
      FROM evalwatch.receiver r JOIN evalwatch.told w USING (receiver, kind)
      JOIN evalwatch.message m USING (receiver, project_key)`;
    expect(await server.query(database.name, rows)).toEqual([
      {
        receiver: 'chat',
        seen_at: 96,
        record_id: 'b',
        status: 'RUNNING',
        mark: 90,
        content: JSON.stringify(MESSAGE),
      },
    ]);

    expect(await move()).toEqual({
      ...first,
      stderr: 'this store has already been copied into this database: nothing was changed\n',
    });
    await expectSameRows();

    const store = await openStore({ path: file, clock: systemClock, emit: () => {} });
    await see(store, 'q', { a: 'COMPLETED' }, 200);
    await store.close();
    expect(await move()).toMatchObject({
      code: 1,
      stdout: '',
      stderr:
        'error: the database of store.postgres_url_file or _env is not empty: name another one, or drop its schema evalwatch\n',
    });
  });

  it('replaces U+0000, which earlier versions stored, by U+FFFD', async () => {
    const store = await openStore({ path: file, clock: systemClock, emit: () => {} });
    await see(store, 'never polled', { 'a\0b': 'RUNNING' }, 200);
    await store.close();

    expect(await move()).toMatchObject({ code: 0, stderr: '' });

    const reader = await openPostgresReader({ clock: systemClock, url: database.url });
    expect(await reader.statuses({ project: 'never polled' })).toMatchObject([
      { promptId: 'a\uFFFDb', status: 'RUNNING' },
    ]);
    await reader.close();
    expect(await move()).toMatchObject({ code: 0, stderr: expect.stringContaining('already') });
  });

  it('lets workers continue where the daemon stopped', async () => {
    await move();
    const sqlite = await openStore({ path: file, clock: systemClock, emit: () => {} });
    const postgres = await openOwning();
    try {
      const due = { dueAt: 4000, limitPerProject: 100 };
      const pendingIn = async (store: Store) =>
        (await store.pendingFailures(due)).map((failure) => ({ ...failure, token: undefined }));
      expect(await pendingIn(postgres.store)).toEqual(await pendingIn(sqlite));
      for (const store of [sqlite, postgres.store]) {
        // One that had gone comes back, one that waited longest moves on, another one fails.
        await see(store, 'p', { gone: 'RUNNING', missing: 'FAILED', "'": 'PENDING' }, 100);
        await see(store, 'q', { a: 'RUNNING', b: 'COMPLETED' }, 110);
        await finish(store, 115);
        for (const failure of await store.pendingFailures(due)) {
          const errorInfo = { error_id: `E${failure.transitionId}`, error_msg: 'x' };
          await store.settleFailure(
            failure,
            withCause({ errorInfo, errorMsgTruncated: false }),
            120,
          );
        }
      }
      const { projects: counted } = await sqlite.snapshot();
      expect(
        counted.flatMap(({ listings }) => listings.get('prompt')?.errors ?? []).length,
      ).toBeGreaterThan(9);
      expect(inOrder(await postgres.store.snapshot())).toEqual(inOrder(await sqlite.snapshot()));
      const start = { transition: 0, settlement: 0, finish: 0 };
      expect(await postgres.store.events(start, 1000)).toEqual(await sqlite.events(start, 1000));
      const known = await sqlite.loadKnown('p', KINDS);
      expect((await postgres.store.loadKnown('p', KINDS)).listings).toEqual(known.listings);
      expect(known.listings.get('prompt')?.records.get("'; DROP TABLE project; --")).toMatchObject({
        experiment: 'of 50',
        metric: "'; DROP TABLE project; --",
      });
    } finally {
      await postgres.leave();
      await Promise.all([sqlite.close(), postgres.store.close()]);
    }
  });

  /** Opens a store whose only worker owns every project. */
  async function openOwning() {
    const worker = await startWorker(database.url, { id: 'the only one', leaseMs: 60_000 });
    await worker.claim(PROJECTS);
    return { store: worker.store, leave: () => worker.coordinator.leave(worker.id) };
  }

  it('can be repeated if it is killed before it writes the last table', async () => {
    const empty = new PostgresDatabase({
      clock: systemClock,
      settings: await readUrl(database.url),
      connections: 1,
      timeoutMs: 10_000,
    });
    await migrate(empty);
    await empty.close();
    const blocker = await server.connect(database.name);
    try {
      // Lets the table be read, but not written.
      await blocker.query(`BEGIN; LOCK TABLE evalwatch.settlement IN SHARE MODE`);
      const child = spawn(
        process.execPath,
        [ENTRY, 'migrate-store', '--from', file, '--config', config],
        { stdio: 'ignore' },
      );
      const exited = once(child, 'exit');
      await vi.waitFor(async () => {
        const waiting = await server.query(
          database.name,
          `SELECT FROM pg_locks WHERE NOT granted AND relation = 'evalwatch.settlement'::regclass`,
        );
        expect(waiting).toHaveLength(1);
      }, PATIENCE);
      child.kill('SIGKILL');
      await exited;
      await blocker.query('COMMIT');
    } finally {
      await blocker.end();
    }
    const { code, stderr } = await move();
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    await expectSameRows();
  });

  it('refuses a database that a worker uses, and a file that a daemon uses, and names the process', async () => {
    const postgres = await openOwning();
    const store = await openStore({ path: file, clock: systemClock, emit: () => {} });
    try {
      expect(await move()).toMatchObject({
        code: 1,
        stderr: expect.stringContaining(`evalwatch.db is in use by process ${process.pid} on `),
      });
      await store.close();
      expect(await move()).toMatchObject({
        code: 1,
        stderr:
          'error: a worker uses the database of store.postgres_url_file or _env: stop all of them before\n',
      });
      expect(await isEmpty()).toBe(true);
    } finally {
      await postgres.leave();
      await postgres.store.close();
    }
  });

  it('reports the error in its options, without credentials or addresses of the database', async () => {
    const { name } = await server.createDatabase();
    const gone = writeConfiguration(temporaryDirectory(), projects, {
      store: { postgres_url_env: 'DATABASE_URL' },
    });
    vi.stubEnv('DATABASE_URL', server.url(name).replace(/:\d+\//, ':1/'));
    onTestFinished(() => void vi.unstubAllEnvs());
    for (const [args, code, message] of [
      [
        ['--from', join(directory, 'nowhere.db'), '--config', config],
        1,
        /there is no store at .*nowhere\.db/,
      ],
      [['--from', file, '--config', before], 2, /does not name a PostgreSQL store: set store\./],
      [['--config', config], 2, /required option '--from <file>' not specified/],
      [
        ['--from', file, '--config', gone],
        1,
        /^error: the database of store\.postgres_url_file or _env cannot be reached/,
      ],
    ] as const) {
      const finished = await commandLine(['migrate-store', ...args]);
      expect(finished).toMatchObject({
        code,
        stdout: '',
        stderr: expect.stringMatching(message),
      });
      for (const part of [PASSWORD, encodeURIComponent(PASSWORD), 'evalwatch_owner', '127.0.0.1']) {
        expect(finished.stderr).not.toContain(part);
      }
    }
  });
});

/** Sorts the totals. */
function inOrder(snapshot: Awaited<ReturnType<Store['snapshot']>>): unknown {
  return {
    ...snapshot,
    projects: snapshot.projects.map(({ listings, ...project }) => ({
      ...project,
      listings: [...listings].map(([kind, { transitions, ...listing }]) => {
        return { kind, ...listing, transitions: transitions.map(String).toSorted() };
      }),
    })),
  };
}
