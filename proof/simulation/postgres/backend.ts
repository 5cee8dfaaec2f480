import { join } from 'node:path';
import type * as ErrorsRoom from '../../../src/monitor/errors.ts';
import type { Attempt, Database, Statement } from '../../../src/store/postgres/database.ts';
import type * as OpenWorkRoom from '../../../src/store/open-work.ts';
import type * as PgErrorsRoom from '../../../src/store/postgres/errors.ts';
import type * as PostgresRoom from '../../../src/store/postgres/postgres-store.ts';
import type { AccessOptions, Backend, ReadLease } from '../backend.ts';
import { createSender, LATE_MS, type Limits, type SenderOptions } from './sender.ts';
import { kindsOf } from './statement-kinds.ts';
import { watchServer, type WatchedServerOptions } from './watched-server.ts';

/** URL that is only parsed: the connections are simulated. */
const URL_OF_WORKERS = 'postgres://nobody@simulated/database';

export interface PostgresBackendOptions
  extends WatchedServerOptions, Pick<SenderOptions, 'leaseMs' | 'weather'> {
  readonly source: string;
}

/** Creates the store of workers: the sources' own PostgreSQL store on simulated connections to `server`. */
export async function createPostgresBackend(options: PostgresBackendOptions): Promise<Backend> {
  const { kernel, source, server, leaseMs, weather, fault } = options;
  const load = async <Room>(file: string): Promise<Room> =>
    (await import(join(source, file))) as Room;
  const { openPostgres } = await load<typeof PostgresRoom>('store/postgres/postgres-store.ts');
  const { toStoreError } = await load<typeof PgErrorsRoom>('store/postgres/errors.ts');
  const { createOpenWork } = await load<typeof OpenWorkRoom>('store/open-work.ts');
  const { StoreError } = await load<typeof ErrorsRoom>('monitor/errors.ts');
  const make = watchServer(options);

  /** Number of the server, or of its connections, that takes the statements: nothing sent to an earlier one arrives. */
  let reign = 0;

  /** Returns the function that opens the database of one process. */
  function openerFor(process: AccessOptions): (limits: Limits) => Database {
    const sender = createSender({
      kernel,
      process,
      leaseMs,
      weather,
      reign: () => reign,
      make: (text, values) => make(process, text, values),
      lost: () => new StoreError('io', 'simulated: the connection was lost'),
      fault,
    });
    return (limits) => {
      limits.signal?.addEventListener('abort', () => sender.giveUpAll());
      const openWork = createOpenWork();
      return {
        query: <Row>(statement: Statement, values: readonly unknown[] = []) =>
          openWork.run(async () => {
            const sentAt = kernel.now();
            const given = await sender.send<Row>(statement, values, limits);
            const isLate = kernel.now() - sentAt > LATE_MS;
            if ('error' in given || isLate) process.onUnanswered();
            const kinds = kindsOf(statement.text);
            if ('error' in given) {
              if (kinds.releases && !isLate) process.onReleaseFailed();
              throw toStoreError(given.error, []);
            }
            if (kinds.readsLeases) {
              process.onLeasesRead(given.rows as unknown as readonly ReadLease[]);
            }
            return given.rows;
          }),
        attempt: <Row>(statement: Statement, values: readonly unknown[]) =>
          openWork.run(async (): Promise<Attempt<Row>> => {
            const given = await sender.send<Row>(statement, values, limits);
            if ('rows' in given) return { rows: given.rows };
            return { error: toStoreError(given.error, []), unknown: given.unknown };
          }),
        transaction: () => Promise.reject(new Error('the tables were made before')),
        keepPlans: () => {},
        close: () => openWork.close(),
      };
    };
  }

  return {
    access: async (process) => {
      const openDatabase = openerFor(process);
      return {
        open: async ({ clock, emit, signal }) => {
          const { name } = process.machine;
          const postgres = await openPostgres({
            url: URL_OF_WORKERS,
            worker: name,
            leaseMs,
            clock,
            emit,
            signal,
            open: openDatabase,
          });
          return {
            store: postgres.store,
            info: { engine: 'postgresql', version: postgres.store.serverVersion },
            isInPlace: () => true,
            shared: { ...postgres, name, leaseMs },
          };
        },
        kill: () => {},
      };
    },
    openReader: () => server.openReader(),
    loseStatements: () => {
      reign += 1;
    },
    makeStandby:
      server.save &&
      (() => {
        const takeBack = server.save?.();
        return () => {
          takeBack?.();
          reign += 1;
        };
      }),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}
