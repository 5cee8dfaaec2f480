import { connect, createServer, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { openPostgresReader } from '../../../src/store/postgres/postgres-reader.ts';
import { pgbouncer, startPooler } from '../../support/pgbouncer.ts';
import { startPostgres } from '../../support/postgres.ts';
import { PASSWORD, postgresPrograms, type PostgresServer } from '../../support/postgres-server.ts';
import { startWorker } from '../../support/postgres-store.ts';

const BELTS = 'statement_timeout, idle_in_transaction_session_timeout';

describe.skipIf(postgresPrograms() === undefined)('a PostgreSQL store behind a proxy', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  it('rejects a server older than PostgreSQL 15', async () => {
    const { url } = await server.createDatabase();
    await using old = await startOlderServer(server.port);
    await expect(startWorker(url.replace(`:${server.port}/`, `:${old.port}/`))).rejects.toThrow(
      'is of PostgreSQL 14, and evalwatch needs 15 or newer',
    );
  });

  describe.skipIf(pgbouncer === undefined)('that is a connection pooler', () => {
    it('serves workers whose transactions share pooled connections', async () => {
      const { name } = await server.createDatabase();
      await using pooler = await startPooler(server, {
        default_pool_size: '2',
        ignore_startup_parameters: BELTS,
      });
      const url = pooler.url(name, '?prepared=false');
      await using one = await startWorker(url);
      await using other = await startWorker(url);
      const projects = Array.from({ length: 12 }, (_, n) => `p${n}`);
      await one.store.configureProjects(projects, 1);
      const [ofOne, ofOther] = await Promise.all([
        one.claim(projects, 6),
        other.claim(projects, 6),
      ]);
      expect([...ofOne, ...ofOther].toSorted()).toEqual(projects.toSorted());

      for (const status of ['RUNNING', 'FAILED', 'PENDING']) {
        await Promise.all([
          ...ofOne.map((project) => one.see(project, { x: status })),
          ...ofOther.map((project) => other.see(project, { x: status })),
        ]);
      }
      const [taken = ''] = ofOne;
      const [{ epoch } = { epoch: 0 }] = await release(one, other, taken);
      expect(epoch).toBeGreaterThan(0);
      expect(await one.see(taken, { x: 'RUNNING' })).toBeUndefined();
      expect(one.log.of('store.commit_refused')).toMatchObject([
        { project: taken, reason: 'epoch' },
      ]);
      const transitions = await one.store.transitions({});
      expect(transitions.map(({ project, to }) => `${project} ${to}`).toSorted()).toEqual(
        projects.flatMap((project) => [`${project} FAILED`, `${project} PENDING`]).toSorted(),
      );
    });

    it('names the pooler setting to change if startup parameters are rejected', async () => {
      const { name } = await server.createDatabase();
      await using pooler = await startPooler(server);
      const opening = openPostgresReader({
        clock: systemClock,
        url: pooler.url(name, '?prepared=false'),
      });
      await expect(opening).rejects.toThrow(`ignore_startup_parameters = ${BELTS}`);
      await expect(opening).rejects.not.toThrow(PASSWORD);
    });
  });
});

/** Moves the project from the first worker to the other one. */
async function release(
  one: Awaited<ReturnType<typeof startWorker>>,
  other: Awaited<ReturnType<typeof startWorker>>,
  project: string,
) {
  await one.coordinator.release(one.id, [project]);
  return await other.coordinator.claim(other.id, [project], 1);
}

/** Matches the first two digits of a value of six bytes, such as 150018. */
const VERSION = new RegExp(`(?<=${String.fromCharCode(0, 0, 0, 6)})1\\d(?=\\d{4})`);

/** Starts a proxy to the server at this port that reports version 14. It replaces two digits, so no byte moves. */
async function startOlderServer(port: number) {
  const proxy = createServer((client) => {
    const upstream = connect(port, '127.0.0.1');
    client.pipe(upstream);
    upstream.on('data', (bytes) => {
      client.write(Buffer.from(bytes.toString('latin1').replace(VERSION, '14'), 'latin1'));
    });
    for (const socket of [client, upstream]) {
      socket.on('error', () => undefined);
      socket.on('close', () => {
        client.destroy();
        upstream.destroy();
      });
    }
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  return {
    port: (proxy.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      const closed = once(proxy, 'close');
      proxy.close();
      await closed;
    },
  };
}
