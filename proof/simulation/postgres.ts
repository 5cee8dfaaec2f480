import { Socket } from 'node:net';
import { join } from 'node:path';
import { Client } from 'pg';
import type * as ClockRoom from '../../src/app/clock.ts';
import type * as ErrorsRoom from '../../src/monitor/errors.ts';
import type { Database, DatabaseOptions, Statement } from '../../src/store/postgres/database.ts';
import type * as PgErrorsRoom from '../../src/store/postgres/errors.ts';
import type * as ReaderRoom from '../../src/store/postgres/postgres-reader.ts';
import type * as PostgresRoom from '../../src/store/postgres/postgres-store.ts';
import type * as SessionRoom from '../../src/store/postgres/session.ts';
import type * as UrlRoom from '../../src/store/postgres/url.ts';
import type { Backend, StoreWeather } from './backend.ts';
import type { Kernel } from './kernel.ts';
import { type Machine, START } from './machine.ts';

/** Length of the workers' leases, ms. */
const LEASE_MS = 15_000;

/**
 * The functions of time that the statements call, in a schema that is searched before PostgreSQL's own: a real server in
 * virtual time.
 */
const VIRTUAL_TIME = `
CREATE SCHEMA simulated;
CREATE FUNCTION simulated.now() RETURNS timestamptz LANGUAGE sql STABLE AS
  $$ SELECT to_timestamp(current_setting('simulated.now')::float8) $$;
CREATE FUNCTION simulated.clock_timestamp() RETURNS timestamptz LANGUAGE sql STABLE AS
  $$ SELECT to_timestamp(current_setting('simulated.now')::float8) $$`;

const PROJECTS = 'SELECT id, version, owner FROM evalwatch.project';
/** A statement that commits polls, or that settles a failure. */
const WRITES = /INSERT INTO evalwatch\.(?:transition|settlement)\b/;
/** A statement that commits polls. */
const COMMITS = /version = (?:\w+\.)?version \+ 1/;

type Limits = Pick<DatabaseOptions, 'timeoutMs' | 'signal'>;

interface ProjectRow {
  readonly id: string;
  readonly version: number;
  readonly owner: string | null;
}

export interface PostgresBackendOptions {
  readonly kernel: Kernel;
  readonly source: string;
  /** Of a new database. */
  readonly url: string;
  readonly weather: () => StoreWeather;
  readonly fault: (text: string) => void;
}

/**
 * A real PostgreSQL server, whose statements take virtual time only: one connection makes them all, in the order in which
 * they arrive. Requests and answers are late or lost on the way.
 */
export async function createPostgresBackend(options: PostgresBackendOptions): Promise<Backend> {
  const { kernel, source, url, weather, fault } = options;
  const load = async <Room>(file: string): Promise<Room> =>
    (await import(join(source, file))) as Room;
  const { openPostgres } = await load<typeof PostgresRoom>('store/postgres/postgres-store.ts');
  const { openPostgresReader } = await load<typeof ReaderRoom>('store/postgres/postgres-reader.ts');
  const { sessionConfig } = await load<typeof SessionRoom>('store/postgres/session.ts');
  const { readUrl } = await load<typeof UrlRoom>('store/postgres/url.ts');
  const { toStoreError } = await load<typeof PgErrorsRoom>('store/postgres/errors.ts');
  const { StoreError } = await load<typeof ErrorsRoom>('monitor/errors.ts');
  const { systemClock } = await load<typeof ClockRoom>('app/clock.ts');

  const settings = await readUrl(url);
  const [server] = settings.servers;
  if (server === undefined) throw new Error('no server');
  // The tables are made in real time, before the simulation.
  const first = await openPostgres({
    url,
    worker: 'first',
    leaseMs: LEASE_MS,
    clock: systemClock,
    emit: () => {},
    signal: new AbortController().signal,
  });
  await first.store.close();
  const client = new Client(sessionConfig(settings, server, () => new Socket()));
  await client.connect();
  await client.query(VIRTUAL_TIME);
  await client.query('SET search_path = simulated, pg_catalog');

  async function projects(): Promise<ReadonlyMap<string, ProjectRow>> {
    const { rows } = await client.query<ProjectRow>(PROJECTS);
    return new Map(rows.map((row) => [row.id, row]));
  }

  /** Makes a statement at this virtual time. */
  async function make<Row>(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    const seconds = String((START + kernel.now()) / 1000);
    await client.query("SELECT set_config('simulated.now', $1, false)", [seconds]);
    return (await client.query<Row & object>({ text, values: [...values] })).rows;
  }

  let last: Promise<unknown> = Promise.resolve();

  /** Makes one thing after the other, while virtual time stands still. */
  async function inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const turn = kernel.real(() => last.then(work));
    last = turn.catch(() => undefined);
    return await turn;
  }

  async function makeWatched<Row>(
    machine: Machine,
    { text }: Statement,
    values: readonly unknown[],
    onCommitted: (project: string) => void,
  ): Promise<readonly Row[]> {
    if (!COMMITS.test(text)) return await make<Row>(text, values);
    const before = await projects();
    const rows = await make<Row>(text, values);
    for (const { id, version } of (await projects()).values()) {
      const earlier = before.get(id);
      if (version === earlier?.version) continue;
      if (earlier?.owner !== machine.name) {
        fault(`${machine.name} committed ${id}, which ${earlier?.owner ?? 'nobody'} owns`);
      }
      onCommitted(id);
    }
    return rows;
  }

  return {
    access: async ({ machine, onWritten, onCommitted }) => {
      type Answer<Row> =
        { readonly rows: readonly Row[] } | { readonly error: unknown; readonly unknown: boolean };

      const inFlight = new Set<Promise<unknown>>();

      /** Sends a statement; it arrives or not, and so does its answer. */
      function send<Row>(
        statement: Statement,
        values: readonly unknown[],
        { timeoutMs, signal }: Limits,
      ): Promise<Answer<Row>> {
        const { promise, resolve } = Promise.withResolvers<Answer<Row>>();
        const lost = () => new StoreError('io', 'simulated: the connection was lost');
        const answer = (ms: number, given: Answer<Row>) => machine.after(ms, () => resolve(given));
        const { fails, slow } = weather();
        const way = () =>
          kernel.chance(slow) ? kernel.between(100, 6000) : kernel.between(0.1, 3);
        if (kernel.chance(fails)) {
          // Nothing was sent.
          answer(way(), { error: lost(), unknown: false });
          return promise;
        }
        const giveUp = () => resolve({ error: lost(), unknown: true });
        const timer = machine.clock.timeout(timeoutMs, giveUp);
        signal?.addEventListener('abort', giveUp);
        const arrives = !kernel.chance(fails / 2);
        const returns = !kernel.chance(fails / 2);
        const isReset = kernel.chance(0.7);
        inFlight.add(promise);
        void promise.finally(() => {
          timer.cancel();
          signal?.removeEventListener('abort', giveUp);
          inFlight.delete(promise);
        });
        const arrive = async () => {
          let given: Answer<Row>;
          try {
            given = { rows: await makeWatched<Row>(machine, statement, values, onCommitted) };
          } catch (error) {
            given = { error, unknown: false };
          }
          if (machine.isAlive() && WRITES.test(statement.text)) onWritten();
          if (returns) answer(way(), given);
          else if (isReset) answer(way(), { error: lost(), unknown: true });
        };
        // What is on its way arrives even if its sender is dead by then.
        // Some are held up on the way for longer than their sender waits, or than its lease lasts.
        const takes = kernel.chance(slow) ? kernel.between(LEASE_MS / 2, 90_000) : way();
        if (arrives) kernel.after(takes, () => void inTurn(arrive));
        else if (isReset) answer(way(), { error: lost(), unknown: true });
        return promise;
      }

      const open = (limits: Limits): Database => ({
        query: async <Row>(statement: Statement, values: readonly unknown[] = []) => {
          const given = await send<Row>(statement, values, limits);
          if ('error' in given) throw toStoreError(given.error, []);
          return given.rows;
        },
        // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- as the interface has it
        attempt: async <Row>(statement: Statement, values: readonly unknown[]) => {
          const given = await send<Row>(statement, values, limits);
          if ('rows' in given) return { rows: given.rows };
          return { error: toStoreError(given.error, []), unknown: given.unknown };
        },
        // Only the creation of the tables.
        transaction: (work) =>
          inTurn(async () => {
            await client.query('BEGIN');
            const result = await work((text, values = []) => make(text, values));
            await client.query('COMMIT');
            return result;
          }),
        keepPlans: () => {},
        close: async () => {
          await Promise.all(inFlight);
        },
      });

      return {
        open: async ({ clock, emit, signal }) => {
          const name = machine.name;
          const lease = { leaseMs: LEASE_MS, clock };
          const postgres = await openPostgres({ url, worker: name, ...lease, emit, signal, open });
          return {
            store: postgres.store,
            info: { engine: 'postgresql', version: postgres.store.serverVersion },
            isInPlace: () => true,
            shared: { ...postgres, name, leaseMs: LEASE_MS },
          };
        },
        kill: () => {},
      };
    },
    openReader: () => openPostgresReader({ url, clock: systemClock }),
    [Symbol.asyncDispose]: () => client.end(),
  };
}
