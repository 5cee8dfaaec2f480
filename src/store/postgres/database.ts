import type { PoolClient, QueryConfig } from 'pg';
import { type ConcurrencyLimit, limitConcurrency } from '../../concurrency/limit-concurrency.ts';
import { StoreError } from '../../monitor/errors.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import { isCollision, isNoPrimary, isOutcomeUnknown, toStoreError } from './errors.ts';
import { Servers } from './servers.ts';
import type { ConnectionSettings } from './url.ts';

/** An SQL statement. A connection keeps the plan of a statement with a name, after {@link PostgresDatabase.keepPlans}. */
export interface Statement {
  readonly name?: string;
  readonly text: string;
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

const builtStatements = new Map<string, Statement>();

/** Returns the statement of this name, whose text is built at the first call. The name decides the text. */
export function builtStatement(name: string, textOf: () => string): Statement {
  let statement = builtStatements.get(name);
  if (statement === undefined) builtStatements.set(name, (statement = { name, text: textOf() }));
  return statement;
}

/** What a store needs of the database. */
export type Database = Pick<PostgresDatabase, keyof PostgresDatabase>;

/** The database, on the server that takes writes. Its connections are made when they are needed. */
export class PostgresDatabase {
  readonly #options: DatabaseOptions;
  readonly #servers: Servers;
  readonly #limitUse: ConcurrencyLimit;
  readonly #inUse = new Set<PoolClient>();
  /** Work that a close waits for. */
  readonly #underWay = new Set<Promise<unknown>>();
  #isClosed = false;
  #keepsPlans = false;

  constructor(options: DatabaseOptions) {
    const { settings, connections, timeoutMs, clock, signal } = options;
    this.#options = options;
    this.#servers = new Servers(settings, connections, timeoutMs);
    this.#limitUse = limitConcurrency(connections, {
      maxMs: () => this.#timeLeft(),
      timeout: (ms, callback) => clock.timeout(ms, callback),
      signal,
      error: tooManyWait,
    });
    signal?.addEventListener('abort', () => {
      for (const client of this.#inUse) client.end().catch(ignore);
    });
  }

  /** Runs one statement, committed when it resolves, and returns its rows. @throws {StoreError} */
  query<Row>(statement: Statement, values: readonly unknown[] = []): Promise<readonly Row[]> {
    return this.#during(() => this.#run<Row>(statement, values));
  }

  /** Runs one statement, once. `unknown` is true after an error if the statement may have been committed, or may be yet. */
  attempt<Row>(statement: Statement, values: readonly unknown[]): Promise<Attempt<Row>> {
    return this.#during(async () => {
      try {
        return { rows: await this.#run<Row>(statement, values) };
      } catch (error) {
        // A StoreError comes from connecting; nothing was sent.
        const unknown = !(error instanceof StoreError) && isOutcomeUnknown(error);
        return { error: toStoreError(error, this.#options.settings.secrets), unknown };
      }
    });
  }

  /**
   * Runs statements in one transaction, on one connection.
   * @param statementMs time limit of each statement, where it is longer than usual @throws {StoreError}
   */
  transaction<Result>(
    work: (run: RunInTransaction) => Promise<Result>,
    statementMs?: number,
  ): Promise<Result> {
    const limit = statementMs === undefined ? {} : { query_timeout: statementMs };
    const inTransaction = async (client: PoolClient) => {
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
    };
    return this.#during(() => this.#withClient(inTransaction));
  }

  /** Allows plans to be kept. A plan made for empty tables would read each of them whole when they are full. */
  keepPlans(): void {
    this.#keepsPlans = true;
  }

  /** Closes every connection after all work that has begun. */
  async close(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay);
    this.#isClosed = true;
    await this.#servers.close(this.#options.clock);
  }

  async #during<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#isClosed) throw new StoreError('other', 'the store is closed');
    const running = work();
    this.#underWay.add(running);
    try {
      return await running;
    } catch (error) {
      throw toStoreError(error, this.#options.settings.secrets);
    } finally {
      this.#underWay.delete(running);
    }
  }

  async #run<Row>({ name, text }: Statement, values: readonly unknown[]): Promise<readonly Row[]> {
    const keepsPlan = this.#keepsPlans && this.#options.settings.prepared && name !== undefined;
    const config: QueryConfig = { text, values: [...values], ...(keepsPlan && { name }) };
    for (let left = MAX_REPETITIONS; ; left -= 1) {
      try {
        return await this.#withClient(async (client) => {
          const limited = { ...config, query_timeout: this.#timeLeft() };
          return (await client.query<Row & object>(limited)).rows;
        });
      } catch (error) {
        if (left === 0 || !isCollision(error)) throw error;
      }
    }
  }

  /** Waits for a free connection here, because the pool would apply the shorter time limit for connecting. */
  async #withClient<Result>(work: (client: PoolClient) => Promise<Result>): Promise<Result> {
    return await this.#limitUse(async () => {
      const { client, leave } = await this.#servers.connect();
      this.#inUse.add(client);
      try {
        const result = await work(client);
        client.release();
        return result;
      } catch (error) {
        client.release(isOutcomeUnknown(error));
        if (isNoPrimary(error) || isUnanswered(error)) leave();
        throw error;
      } finally {
        this.#inUse.delete(client);
      }
    });
  }

  #timeLeft(): number {
    const { timeoutMs, signal } = this.#options;
    return signal?.aborted === true ? Math.min(AFTER_ABORT_TIMEOUT_MS, timeoutMs) : timeoutMs;
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
