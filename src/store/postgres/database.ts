import type { PoolClient, QueryConfig } from 'pg';
import { limitConcurrency } from '../../concurrency/limit-concurrency.ts';
import { StoreError } from '../../monitor/errors.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import { createOpenWork } from '../open-work.ts';
import { isCollision, isNoPrimary, isOutcomeUnknown, toStoreError } from './errors.ts';
import { createServers } from './servers.ts';
import type { ConnectionSettings } from './url.ts';

/** An SQL statement. A connection keeps the plan of a statement with a name, after {@link Database.keepPlans}. */
export interface Statement {
  readonly name?: string;
  readonly text: string;
}

/** The database, on the server that takes writes. */
export interface Database {
  /** Runs one statement, committed when it resolves, and returns its rows. @throws {StoreError} */
  query<Row>(statement: Statement, values?: readonly unknown[]): Promise<readonly Row[]>;
  /** Runs one statement, once. `unknown` is true after an error if the statement may have been committed, or may be yet. */
  attempt<Row>(statement: Statement, values: readonly unknown[]): Promise<Attempt<Row>>;
  /**
   * Runs statements in one transaction, on one connection.
   * @param statementMs time limit of each statement, where it is longer than usual @throws {StoreError}
   */
  transaction<Result>(
    work: (run: RunInTransaction) => Promise<Result>,
    statementMs?: number,
  ): Promise<Result>;
  /** Allows plans to be kept. A plan made for empty tables would read each of them whole when they are full. */
  keepPlans(): void;
  /** Closes every connection after all work that has begun. */
  close(): Promise<void>;
}

export type RunInTransaction = <Row>(
  text: string,
  values?: readonly unknown[],
) => Promise<readonly Row[]>;

/** Outcome of one attempt at a statement: its rows, or its error. */
export type Attempt<Row> =
  | { readonly rows: readonly Row[]; readonly error?: never; readonly unknown?: never }
  | { readonly rows?: never; readonly error: StoreError; readonly unknown: boolean };

export interface DatabaseOptions {
  readonly settings: ConnectionSettings;
  readonly connections: number;
  /**
   * Time limit of a statement, after which every connection to its server is closed. Also the limit of its wait for a
   * connection, after which it is not sent.
   */
  readonly timeoutMs: number;
  readonly clock: Clock;
  /** On abort, running statements fail, and later statements have 1 s. */
  readonly signal?: AbortSignal;
}

/** Maximum number of repetitions of a statement that collided with another. */
const MAX_REPETITIONS = 5;
/** Time limit of statements that begin after the abort, ms. */
const AFTER_ABORT_TIMEOUT_MS = 1000;

/** Opens the database. Its connections are made when they are needed. */
export function openDatabase(options: DatabaseOptions): Database {
  const { settings, connections, timeoutMs, clock, signal } = options;
  const { secrets } = settings;
  const servers = createServers({ settings, connections, timeoutMs, clock });
  const limitUse = limitConcurrency(connections, {
    maxMs: timeLeft,
    timeout: (ms, callback) => clock.timeout(ms, callback),
    signal,
    error: tooManyWait,
  });
  const inUse = new Set<PoolClient>();
  signal?.addEventListener('abort', () => {
    for (const client of inUse) client.end().catch(ignore);
  });
  const openWork = createOpenWork();
  let keepsPlans = false;

  function timeLeft(): number {
    return signal?.aborted === true ? Math.min(AFTER_ABORT_TIMEOUT_MS, timeoutMs) : timeoutMs;
  }

  /** Waits for a free connection here, because the pool would apply the shorter time limit for connecting. */
  async function withClient<Result>(work: (client: PoolClient) => Promise<Result>) {
    return await limitUse(async () => {
      const { client, pool } = await servers.connect();
      inUse.add(client);
      try {
        const result = await work(client);
        client.release();
        return result;
      } catch (error) {
        client.release(isOutcomeUnknown(error));
        if (isNoPrimary(error) || isUnanswered(error)) servers.leave(pool);
        throw error;
      } finally {
        inUse.delete(client);
      }
    });
  }

  async function run<Row>(statement: Statement, values: readonly unknown[]) {
    const { name, text } = statement;
    const config: QueryConfig = {
      text,
      values: [...values],
      ...(keepsPlans && settings.prepared && name !== undefined && { name }),
    };
    for (let left = MAX_REPETITIONS; ; left -= 1) {
      try {
        return await withClient(async (client) => {
          const limited = { ...config, query_timeout: timeLeft() };
          return (await client.query<Row & object>(limited)).rows;
        });
      } catch (error) {
        if (left === 0 || !isCollision(error)) throw error;
      }
    }
  }

  async function asStoreError<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      throw toStoreError(error, secrets);
    }
  }

  return {
    query: <Row>(statement: Statement, values: readonly unknown[] = []) =>
      openWork.run(() => asStoreError(() => run<Row>(statement, values))),
    attempt: <Row>(statement: Statement, values: readonly unknown[]) =>
      openWork.run(async (): Promise<Attempt<Row>> => {
        try {
          return { rows: await run<Row>(statement, values) };
        } catch (error) {
          // A StoreError comes from connecting; nothing was sent.
          const unknown = !(error instanceof StoreError) && isOutcomeUnknown(error);
          return { error: toStoreError(error, secrets), unknown };
        }
      }),
    transaction: (work, statementMs) =>
      openWork.run(() =>
        asStoreError(() => withClient((client) => runTransaction(client, work, statementMs))),
      ),
    keepPlans: () => {
      keepsPlans = true;
    },
    close: async () => {
      await openWork.close();
      await servers.close();
    },
  };
}

async function runTransaction<Result>(
  client: PoolClient,
  work: (run: RunInTransaction) => Promise<Result>,
  statementMs: number | undefined,
): Promise<Result> {
  const limit = statementMs === undefined ? {} : { query_timeout: statementMs };
  const run: RunInTransaction = async <Row>(text: string, values: readonly unknown[] = []) => {
    const config: QueryConfig = { text, values: [...values], ...limit };
    return (await client.query<Row & object>(config)).rows;
  };
  await client.query('BEGIN ISOLATION LEVEL READ COMMITTED');
  try {
    if (statementMs !== undefined) await run(LIMIT, [statementMs]);
    const result = await work(run);
    await client.query('COMMIT');
    return result;
  } catch (error) {
    // The server rolls back. A ROLLBACK could fail and hide the first error.
    client.end().catch(ignore);
    throw error;
  }
}

/** Limits a long statement, and makes the server end it when its client has disconnected, because it holds locks. */
const LIMIT = `SELECT set_config('statement_timeout', $1, true),
    CASE WHEN version() LIKE '%linux%' THEN set_config('client_connection_check_interval', '10s', true) END`;

function isUnanswered(error: unknown): boolean {
  return error instanceof Error && error.message === 'Query read timeout';
}

function tooManyWait(): StoreError {
  return new StoreError(
    'io',
    'the database of store.postgres_url_file or _env has not answered earlier statements yet',
  );
}

function ignore(): void {
  // The statement on the connection rejects with the same error.
}
