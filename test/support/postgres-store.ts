import { randomUUID } from 'node:crypto';
import type { Client } from 'pg';
import { afterAll, beforeAll, describe, type TestOptions } from 'vitest';
import { IN_CI } from './debian-tool.ts';
import { systemClock } from '../../src/app/clock.ts';
import type { Coordinator, WorkerIdentity } from '../../src/coordination/ports.ts';
import { StoreError } from '../../src/monitor/errors.ts';
import type { Clock } from '../../src/monitor/ports/clock.ts';
import { openPostgres, type PostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { pollItems } from './experiments.ts';
import { eventLog } from './monitor.ts';
import { postgresPrograms, type PostgresServer, startPostgres } from './postgres.ts';

const MAX_REPETITIONS = 10;
/** Ends of the messages about a connection that took too long. */
const LATE =
  /\((?:timeout exceeded when trying to connect|Connection terminated due to connection timeout)\)$/;

/** A database for one test. Its end closes the workers and connections that the test has opened. */
export interface TestDatabase extends AsyncDisposable {
  readonly server: PostgresServer;
  readonly name: string;
  readonly url: string;
  /** Runs one statement on a new connection. */
  query(text: string, values?: readonly unknown[]): Promise<Record<string, unknown>[]>;
  connect(): Promise<Client>;
  /** Opens a connection and runs statements on it in a transaction that stays open. */
  begin(text: string): Promise<Client>;
  /** Waits until this many statements wait for a lock. */
  untilWaiting(statements: number): Promise<void>;
  worker(options?: WorkerOptions & { readonly url?: string }): Promise<Worker>;
  /** Starts a worker that owns these projects and has seen prompt x in RUNNING in each. */
  owner(
    projects: readonly string[],
    options?: Parameters<TestDatabase['worker']>[0],
  ): Promise<Worker>;
  /** Ends a lease, as time does. */
  expire(worker: Worker): Promise<void>;
}

/** Selects the statements that wait for a lock. */
export const WAITING = `SELECT pid FROM pg_stat_activity
  WHERE wait_event_type = 'Lock' AND datname = current_database()`;

/**
 * Describes tests that share a real server; `open` creates a database on it. Without PostgreSQL they are skipped, and with CI
 * set they fail.
 */
export function describePostgres(
  name: string,
  define: (open: () => Promise<TestDatabase>) => void,
  {
    start = startPostgres,
    ...options
  }: TestOptions & { readonly start?: () => Promise<PostgresServer> } = {},
): void {
  const runs = postgresPrograms() !== undefined || IN_CI;
  // oxlint-disable-next-line vitest/valid-title -- it is a string
  describe.runIf(runs)(name, options, () => {
    let server: PostgresServer;
    beforeAll(async () => {
      server = await start();
    });
    afterAll(() => server[Symbol.asyncDispose]());
    define(() => createDatabase(server));
  });
}

async function createDatabase(server: PostgresServer): Promise<TestDatabase> {
  const { name, url } = await server.createDatabase();
  const opened = new AsyncDisposableStack();
  const connect = async () => opened.adopt(await server.connect(name), (client) => client.end());
  const query: TestDatabase['query'] = (text, values) => server.query(name, text, values);
  const worker: TestDatabase['worker'] = async (options = {}) =>
    opened.use(await startWorker(options.url ?? url, options));
  return {
    server,
    name,
    url,
    query,
    connect,
    begin: async (text) => {
      const client = await connect();
      await client.query(`BEGIN; ${text}`);
      return client;
    },
    untilWaiting: (statements) => server.untilRows(name, WAITING, (rows) => rows >= statements),
    worker,
    owner: async (projects, options) => {
      const owner = await worker(options);
      await owner.store.configureProjects(projects, 1);
      await owner.claim(projects);
      for (const project of projects) await owner.see(project, { x: 'RUNNING' });
      return owner;
    },
    expire: async ({ id }) => {
      await query('UPDATE evalwatch.worker SET expires_at = now() WHERE worker = $1', [id]);
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

export interface WorkerOptions {
  readonly id?: string;
  readonly leaseMs?: number;
  readonly clock?: Clock;
}

export type Worker = Awaited<ReturnType<typeof startWorker>>;

/** Opens the store and coordinator of a worker, with shortcuts for coordination and poller. */
export async function startWorker(
  url: string,
  { id = randomUUID(), leaseMs = 600_000, clock = systemClock }: WorkerOptions = {},
) {
  const log = eventLog();
  const gaveUp = new AbortController();
  const { store, coordinator } = await connectPatiently(() =>
    openPostgres({
      url,
      worker: id,
      leaseMs,
      clock,
      emit: log.emit,
      signal: gaveUp.signal,
    }),
  );
  // Of another configuration than others, so that it gets all that are free.
  const identity = { id, version: '1.0.0', configDigest: id };
  await connectPatiently(() => coordinator.renew(identity));
  return {
    id,
    identity,
    store,
    coordinator,
    log,
    /** Returns the ids of the projects that it got. */
    claim: (projects: readonly string[], as: WorkerIdentity = identity) =>
      claim(store, coordinator, as, projects),
    /** Takes for its own what the database says that it owns, as a beat does. */
    adopt: () => adopt(store, coordinator, id),
    /** Gives these projects back. */
    release: async (projects: readonly string[]) => {
      const { tokens } = store.ownership;
      await store.ownership.flush();
      await coordinator.release(
        id,
        new Map(projects.map((each) => [each, tokens.get(each) ?? randomUUID()])),
      );
      for (const project of projects) store.ownership.disown(project);
    },
    /** Commits a poll of a project with these statuses by id. */
    see: async (project: string, statuses: Readonly<Record<string, string>>, at = 1000) =>
      (await pollItems(store, project, statuses, at))?.transitions,
    giveUp: () => gaveUp.abort(),
    [Symbol.asyncDispose]: async () => {
      gaveUp.abort();
      await store.close();
    },
  };
}

/**
 * Calls `connect` again if a connection to the database took too long, as a supervisor would start a daemon again. evalwatch
 * gives a connection 3 s, and a busy machine can hold up this process for longer.
 */
export async function connectPatiently<Result>(connect: () => Promise<Result>): Promise<Result> {
  for (let left = MAX_REPETITIONS; ; left -= 1) {
    try {
      return await connect();
    } catch (error) {
      if (left === 0 || !(error instanceof StoreError) || !LATE.test(error.message)) throw error;
      console.warn(`connecting once more: ${error.message}`);
    }
  }
}

async function claim(
  { ownership }: PostgresStore,
  coordinator: Coordinator,
  worker: WorkerIdentity,
  projects: readonly string[],
): Promise<readonly string[]> {
  await coordinator.claim(worker, projects);
  const listed = await coordinator.list(worker.id);
  const ids = listed.map(({ project }) => project).filter((each) => !ownership.tokens.has(each));
  const claimed = await coordinator.load(worker.id, ids);
  for (const { project, token, figures } of claimed) ownership.own(project, token, figures);
  return claimed.map(({ project }) => project).toSorted();
}

/** Lets a worker own what the database says that it owns, as a beat does. */
export async function adopt(
  { ownership }: Pick<PostgresStore, 'ownership'>,
  coordinator: Coordinator,
  worker: string,
): Promise<void> {
  const { tokens } = ownership;
  const listed = await coordinator.list(worker);
  const left = new Set(listed.map(({ project }) => project));
  for (const project of tokens.keys()) if (!left.has(project)) ownership.disown(project);
  const changed = listed.filter(({ project, token }) => tokens.get(project) !== token);
  const configured = changed.filter(({ isRemoved }) => !isRemoved).map(({ project }) => project);
  for (const { project, token } of changed) ownership.own(project, token);
  for (const { project, token, figures } of await coordinator.load(worker, configured)) {
    ownership.own(project, token, figures);
  }
}
