import { promote, startPostgres, startStandby } from '../../test/support/postgres.ts';
import { type PostgresServer } from '../../test/support/postgres-server.ts';

/** The PostgreSQL of a scene: one server, or a primary and its standby. */
export interface Servers extends AsyncDisposable {
  primary(): PostgresServer;
  /** Returns the address of the scene's database, with the first server behind this port. */
  url(port: number): string;
  /** Counts projects whose last stored poll began before this time, epoch ms. */
  notPolledSince(at: number): Promise<number>;
  schemaVersion(): Promise<unknown>;
  /** Kills the primary and promotes its standby. */
  failOver(): Promise<void>;
  /** Starts a new standby in place of the lost primary. */
  rebuild(): Promise<void>;
}

export async function startServers(hasStandby: boolean): Promise<Servers> {
  await using opened = new AsyncDisposableStack();
  const first = opened.use(await startPostgres({ fsync: true }));
  const servers = new Map([[first.port, first]]);
  const { name } = await first.createDatabase();
  let primary = first;
  let standby = hasStandby ? await startStandby(first) : undefined;
  if (standby !== undefined) servers.set(standby.port, standby);
  opened.move();
  const ports = [...servers.keys()];
  let lost: number | undefined;

  return {
    primary: () => primary,
    url: (port) => {
      const hosts = ports.map((one) => `127.0.0.1:${one === first.port ? port : one}`);
      return first.url(name).replace(`127.0.0.1:${first.port}`, hosts.join(','));
    },
    notPolledSince: async (at) => {
      const [row] = await primary.query(
        name,
        'SELECT count(*)::integer AS count FROM evalwatch.project WHERE coalesce(last_poll_at, 0) < $1',
        [at],
      );
      return Number(row?.['count']);
    },
    schemaVersion: async () => {
      const [row] = await primary.query(name, 'SELECT version FROM evalwatch.schema_version');
      return row?.['version'];
    },
    failOver: async () => {
      if (standby === undefined) throw new Error('nobody follows');
      await primary.kill();
      await promote(standby);
      lost = primary.port;
      primary = standby;
      standby = undefined;
    },
    rebuild: async () => {
      if (lost === undefined) throw new Error('nothing is lost');
      await servers.get(lost)?.[Symbol.asyncDispose]();
      servers.delete(lost);
      standby = await startStandby(primary, lost);
      servers.set(lost, standby);
      lost = undefined;
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(servers.values().map((server) => server[Symbol.asyncDispose]()));
    },
  };
}
