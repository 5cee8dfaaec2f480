import { join } from 'node:path';
import type * as ErrorsRoom from '../../src/monitor/errors.ts';
import type { StoreReader } from '../../src/monitor/ports/store.ts';
import type { Database, DatabaseOptions, Statement } from '../../src/store/postgres/database.ts';
import type * as PgErrorsRoom from '../../src/store/postgres/errors.ts';
import type * as PostgresRoom from '../../src/store/postgres/postgres-store.ts';
import type { Backend, StoreWeather } from './backend.ts';
import type { Kernel } from './kernel.ts';
import { type Machine, START } from './machine.ts';

/** Length of the workers' leases, ms. */
export const LEASE_MS = 15_000;
/** Only read: the connections are simulated. */
const URL_OF_WORKERS = 'postgres://nobody@simulated/database';

/** A statement that commits polls, or that settles a failure. */
const WRITES = /INSERT INTO evalwatch\.(?:transition|settlement)\b/;
/** A statement that commits polls. */
const COMMITS = /version = (?:\w+\.)?version \+ 1/;
/** A statement that gives a worker projects. */
const CLAIMS = /RETURNING p\.id, p\.epoch\b/;
/** A statement that begins a lease, and one that renews it if it returns a row. */
const BEGINS_LEASE = /INSERT INTO evalwatch\.worker\b/;
const RENEWS_LEASE = /UPDATE evalwatch\.worker SET expires_at\b/;
/** Time after which an answer is late: something else may have happened meanwhile, ms. */
const LATE_MS = 2000;

/** The server's side: makes one statement after the other. */
export interface StatementServer extends AsyncDisposable {
  /** Makes a statement at this time of the server, whole epoch µs. Takes no virtual time. @throws {DatabaseError} */
  run(text: string, values: readonly unknown[], nowUs: number): Awaitable<readonly unknown[]>;
  projects(): Awaitable<readonly StoredProject[]>;
  openReader(): Promise<StoreReader>;
}

type Awaitable<Value> = Value | Promise<Value>;

export interface StoredProject {
  readonly id: string;
  readonly version: number;
  readonly owner: string | null;
}

type Limits = Pick<DatabaseOptions, 'timeoutMs' | 'signal'>;

export interface PostgresBackendOptions {
  readonly kernel: Kernel;
  readonly source: string;
  readonly server: StatementServer;
  readonly weather: () => StoreWeather;
  readonly fault: (text: string) => void;
  /** How far the clock of the database is off, ms. */
  readonly clockOffset: () => number;
}

/** The connections of the workers to their server: requests and answers take virtual time, and are late or lost on the way. */
export async function createPostgresBackend(options: PostgresBackendOptions): Promise<Backend> {
  const { kernel, source, server, weather, fault, clockOffset } = options;
  const load = async <Room>(file: string): Promise<Room> =>
    (await import(join(source, file))) as Room;
  const { openPostgres } = await load<typeof PostgresRoom>('store/postgres/postgres-store.ts');
  const { toStoreError } = await load<typeof PgErrorsRoom>('store/postgres/errors.ts');
  const { StoreError } = await load<typeof ErrorsRoom>('monitor/errors.ts');

  async function make<Row>(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    const nowUs = Math.round((START + kernel.now() + clockOffset()) * 1000);
    return (await server.run(text, values, nowUs)) as readonly Row[];
  }

  let last: Promise<unknown> = Promise.resolve();

  /** Makes one thing after the other, while virtual time stands still. */
  async function inTurn(work: () => Promise<void>): Promise<void> {
    const turn = kernel.real(() => last.then(work));
    last = turn.catch(() => undefined);
    await turn;
  }

  async function makeWatched<Row>(
    machine: Machine,
    { text }: Statement,
    values: readonly unknown[],
    onCommitted: (project: string) => void,
  ): Promise<readonly Row[]> {
    if (CLAIMS.test(text)) {
      const claimed = await make<Row & { readonly id: string }>(text, values);
      if (claimed.length > 0)
        kernel.note(`${machine.name} owns ${claimed.map(({ id }) => id).join()}`);
      return claimed;
    }
    if (!COMMITS.test(text)) return await make<Row>(text, values);
    const before = new Map(
      (await server.projects()).map(({ id, version, owner }) => [id, { version, owner }]),
    );
    const rows = await make<Row>(text, values);
    for (const { id, version } of await server.projects()) {
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
    access: async ({ machine, onWritten, onCommitted, onTrouble, onRenewed }) => {
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
        const sentAt = kernel.now();
        if (!arrives || !returns) onTrouble();
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
            // A server refuses with a code.
            if (!(error instanceof Error && 'code' in error)) fault(`a bug: ${String(error)}`);
            given = { error, unknown: false };
          }
          if (kernel.now() - sentAt > LATE_MS) onTrouble();
          const { text } = statement;
          const isRenewed = RENEWS_LEASE.test(text) && 'rows' in given && given.rows.length > 0;
          if (BEGINS_LEASE.test(text) || isRenewed) onRenewed();
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
        transaction: () => Promise.reject(new Error('the tables were made before')),
        keepPlans: () => {},
        close: async () => {
          await Promise.all(inFlight);
        },
      });

      return {
        open: async ({ clock, emit, signal }) => {
          const name = machine.name;
          const lease = { leaseMs: LEASE_MS, clock };
          const postgres = await openPostgres({
            url: URL_OF_WORKERS,
            worker: name,
            ...lease,
            emit,
            signal,
            open,
          });
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
    openReader: () => server.openReader(),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}
