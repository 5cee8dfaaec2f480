import { Socket } from 'node:net';
import { join } from 'node:path';
import { Client } from 'pg';
import type * as ClockRoom from '../../../src/app/clock.ts';
import type * as ReaderRoom from '../../../src/store/postgres/postgres-reader.ts';
import type * as PostgresRoom from '../../../src/store/postgres/postgres-store.ts';
import type * as SessionRoom from '../../../src/store/postgres/session.ts';
import type * as UrlRoom from '../../../src/store/postgres/url.ts';
import type { StatementServer, StoredProject } from './statement-server.ts';

/**
 * Gives a real server virtual time: creates the time functions that the statements call, in a schema that is searched before
 * PostgreSQL's own.
 */
const VIRTUAL_TIME = `
CREATE SCHEMA simulated;
CREATE FUNCTION simulated.now() RETURNS timestamptz LANGUAGE sql STABLE AS
  $$ SELECT timestamptz 'epoch' + current_setting('simulated.now_us')::bigint * interval '1 microsecond' $$;
CREATE FUNCTION simulated.clock_timestamp() RETURNS timestamptz LANGUAGE sql STABLE AS
  $$ SELECT simulated.now() $$`;

const PROJECTS = 'SELECT id, version, owner, removed_at FROM evalwatch.project';

/** Connects to a real PostgreSQL server. @param url of a new database */
export async function connectRealServer(source: string, url: string): Promise<StatementServer> {
  const load = async <Room>(file: string): Promise<Room> =>
    (await import(join(source, file))) as Room;
  const { openPostgres } = await load<typeof PostgresRoom>('store/postgres/postgres-store.ts');
  const { openPostgresReader } = await load<typeof ReaderRoom>('store/postgres/postgres-reader.ts');
  const { sessionConfig } = await load<typeof SessionRoom>('store/postgres/session.ts');
  const { readUrl } = await load<typeof UrlRoom>('store/postgres/url.ts');
  const { systemClock } = await load<typeof ClockRoom>('app/clock.ts');

  const settings = await readUrl(url);
  const [address] = settings.servers;
  if (address === undefined) throw new Error('no server');
  // The tables are made in real time, before the simulation.
  const first = await openPostgres({
    url,
    worker: 'first',
    leaseMs: 15_000,
    clock: systemClock,
    emit: () => {},
    signal: new AbortController().signal,
  });
  await first.store.close();
  const client = new Client(sessionConfig(settings, address, () => new Socket()));
  await client.connect();
  await client.query(VIRTUAL_TIME);
  await client.query('SET search_path = simulated, pg_catalog');

  return {
    run: async (text, values, nowUs) => {
      await client.query("SELECT set_config('simulated.now_us', $1, false)", [String(nowUs)]);
      return (await client.query<object>({ text, values: [...values] })).rows;
    },
    projects: async () => (await client.query<StoredProject>(PROJECTS)).rows,
    openReader: () => openPostgresReader({ url, clock: systemClock }),
    [Symbol.asyncDispose]: () => client.end(),
  };
}
