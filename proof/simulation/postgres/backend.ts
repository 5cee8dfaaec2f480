import { join } from 'node:path';
import type * as ErrorsRoom from '../../../src/monitor/errors.ts';
import type { Attempt, Database, Statement } from '../../../src/store/postgres/database.ts';
import type * as PgErrorsRoom from '../../../src/store/postgres/errors.ts';
import type * as PostgresRoom from '../../../src/store/postgres/postgres-store.ts';
import type { Backend } from '../backend.ts';
import type { Kernel } from '../kernel.ts';
import { START } from '../machine.ts';
import type { Hooks } from '../process.ts';
import { createSender, kindsOf, type Limits, type SenderOptions } from './sender.ts';
import { openServer, type Server } from './server.ts';

/** URL that is only parsed: the connections are simulated. */
const URL_OF_WORKERS = 'postgres://nobody@simulated/database';

export interface PostgresBackendOptions extends Pick<SenderOptions, 'leaseMs' | 'weather'> {
  readonly kernel: Kernel;
  readonly source: string;
  readonly fault: (text: string) => void;
}

/** Creates the store of workers: the sources' own PostgreSQL store on simulated connections to one server. */
export async function createPostgresBackend(options: PostgresBackendOptions): Promise<Backend> {
  const { kernel, source, leaseMs, weather, fault } = options;
  const load = async <Room>(file: string): Promise<Room> =>
    (await import(join(source, file))) as Room;
  const { openPostgres } = await load<typeof PostgresRoom>('store/postgres/postgres-store.ts');
  const { toStoreError } = await load<typeof PgErrorsRoom>('store/postgres/errors.ts');
  const { StoreError } = await load<typeof ErrorsRoom>('monitor/errors.ts');
  const server = await openServer(source);
  const execute = watch(server, options);

  /** Number of the server, or of its connections, that takes the statements: nothing sent to an earlier one arrives. */
  let reign = 0;

  /** Returns the function that opens the database of one process. */
  function openerFor(process: Hooks): (limits: Limits) => Database {
    const sender = createSender({
      kernel,
      process,
      leaseMs,
      weather,
      reign: () => reign,
      execute: (statement, values) => execute(process, statement, values),
      lost: () => new StoreError('io', 'simulated: the connection was lost'),
      fault,
    });
    return (limits) => {
      limits.signal?.addEventListener('abort', () => sender.giveUpAll());
      const underWay = new Set<Promise<unknown>>();
      let isClosed = false;
      const during = async <Result>(work: () => Promise<Result>): Promise<Result> => {
        if (isClosed) throw new StoreError('other', 'the store is closed');
        const running = work();
        underWay.add(running);
        try {
          return await running;
        } finally {
          underWay.delete(running);
        }
      };
      return {
        query: <Row>(statement: Statement, values?: readonly unknown[]) =>
          during(async () => {
            const given = await sender.send<Row>(statement, values ?? [], limits);
            if ('error' in given) throw toStoreError(given.error, []);
            return given.rows;
          }),
        attempt: <Row>(statement: Statement, values: readonly unknown[]) =>
          during(async (): Promise<Attempt<Row>> => {
            const given = await sender.send<Row>(statement, values, limits);
            if ('rows' in given) return { rows: given.rows };
            return { error: toStoreError(given.error, []), unknown: given.unknown };
          }),
        transaction: () => Promise.reject(new Error('the tables were made before')),
        keepPlans: () => {},
        close: async () => {
          while (underWay.size > 0) await Promise.allSettled(underWay);
          isClosed = true;
        },
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
            notifications: postgres.store.notifications,
            info: { engine: 'postgresql', version: postgres.store.serverVersion },
            isInPlace: () => true,
            shared: { ...postgres, name, leaseMs },
          };
        },
        kill: () => {},
      };
    },
    openReader: async () => server.openReader(),
    loseStatements: () => {
      reign += 1;
    },
    makeStandby: () => {
      const undo = server.save();
      return async () => {
        await undo();
        reign += 1;
      };
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

/** Returns a function that executes a statement, reports its effects, and a fault if its process may not cause them. */
function watch(
  server: Server,
  { kernel, fault }: Pick<PostgresBackendOptions, 'kernel' | 'fault'>,
) {
  return async (
    process: Hooks,
    statement: Statement,
    values: readonly unknown[],
  ): Promise<readonly unknown[]> => {
    const { name } = process.machine;
    const kinds = kindsOf(statement.text);
    const before =
      kinds.configures || kinds.commits || kinds.claims
        ? new Map((await server.projects()).map((row) => [row.id, row]))
        : undefined;
    const rows = await server.run(statement, values, START + kernel.now());
    if (kinds.configures) {
      const projects = JSON.parse(String(values[0])) as readonly string[];
      kernel.note(`${name} configures ${projects.join()}`);
      const added = projects.filter((id) => before?.get(id)?.removed_at !== null);
      process.onConfigured({ projects, added });
    }
    if (kinds.postponesFailure || kinds.settlesFailure) {
      const [, parameter] = /\bf\.transition_id = \$(\d+)/.exec(statement.text) ?? [];
      const project = await server.projectOf(Number(values[Number(parameter) - 1]));
      if (project?.removed_at === null) process.onFailureTaken(project.id);
    }
    if (kinds.claims) {
      const claimed = (await server.projects())
        .filter(({ id, owner }) => owner === name && before?.get(id)?.owner !== name)
        .map(({ id }) => id);
      if (claimed.length > 0) kernel.note(`${name} owns ${claimed.join()}`);
    }
    if (kinds.commits) {
      for (const { id, token, removed_at } of await server.projects()) {
        const earlier = before?.get(id);
        if (token === earlier?.token) continue;
        if (earlier?.owner !== name) {
          fault(`${name} committed ${id}, which ${earlier?.owner ?? 'nobody'} owns`);
        }
        if (removed_at !== null) fault(`${name} committed ${id}, which nobody has configured`);
        process.onCommitted(id);
      }
    }
    return rows;
  };
}
