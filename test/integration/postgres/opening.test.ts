import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { IN_CI } from '../../support/debian-tool.ts';
import { systemClock } from '../../../src/app/clock.ts';
import { openPostgresReader } from '../../../src/store/postgres/postgres-reader.ts';
import { CONNECT_MS } from '../../../src/store/postgres/servers.ts';
import { makeCertificate } from '../../support/certificates.ts';
import { pgbouncer, startPooler } from '../../support/pgbouncer.ts';
import { PASSWORD, startPostgres } from '../../support/postgres.ts';
import { describePostgres, startWorker } from '../../support/postgres-store.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const BELTS = 'statement_timeout, idle_in_transaction_session_timeout';

describePostgres('a PostgreSQL store', (open) => {
  it('is created once by workers that start together', async () => {
    await using db = await open();
    const workers = await Promise.all(Array.from({ length: 4 }, () => db.worker()));
    const [row] = await db.query('SELECT * FROM evalwatch.schema_version');
    expect(row).toMatchObject({ version: 9, compatible_from: 9 });
    expect(workers[0]?.store.serverVersion).toMatch(/^\d+\.\d+$/);
  });

  it.each(['repeatable read', 'serializable'])(
    'is created once by concurrent workers if the default isolation level is %s',
    async (isolation) => {
      await using db = await open();
      const setting = `default_transaction_isolation = '${isolation}'`;
      await db.query(`ALTER DATABASE ${db.name} SET ${setting}`);
      // The holder of the lock makes the schema. All others found none before they waited for the lock.
      const blocking = await db.begin('SELECT pg_advisory_xact_lock(1163286356)');
      const starting = Array.from({ length: 3 }, () => db.worker());
      await db.untilWaiting(3);
      await blocking.query('COMMIT');

      await Promise.all(starting);
      const [row] = await db.query('SELECT * FROM evalwatch.schema_version');
      expect(row).toMatchObject({ version: 9 });
    },
  );

  it.each(['LATIN1', 'SQL_ASCII'])('rejects a database with the encoding %s', async (encoding) => {
    await using db = await open();
    const name = `encoding_${encoding.toLowerCase()}`;
    const making = `CREATE DATABASE ${name} ENCODING '${encoding}' LC_COLLATE 'C' LC_CTYPE 'C'`;
    await db.query(`${making} TEMPLATE template0`);
    const url = db.server.url(name);
    const expected = `the database of store.postgres_url_file or _env has the encoding ${encoding}, and evalwatch needs UTF8`;
    await expect(db.worker({ url })).rejects.toThrow(expected);
    await expect(openPostgresReader({ clock: systemClock, url })).rejects.toThrow(expected);
  });

  it.each([
    ['of a newer version that this one can work with', 'version = 10, compatible_from = 9', 'done'],
    [
      'of a newer version that it cannot work with',
      'version = 10, compatible_from = 10',
      'the database of store.postgres_url_file or _env has schema version 10, this evalwatch supports 9: run the newer evalwatch that wrote it',
    ],
  ])('opens only if its schema is compatible: %s', async (_name, change, outcome) => {
    await using db = await open();
    await db.worker();
    await db.query(`UPDATE evalwatch.schema_version SET ${change}`);
    const attempts = [
      () => db.worker(),
      async () => (await openPostgresReader({ clock: systemClock, url: db.url })).close(),
    ];
    for (const attempt of attempts) {
      const how = await attempt().then(
        () => 'done',
        (error: Error) => error.message,
      );
      expect(how).toBe(outcome);
    }
  });

  it('rejects a database with a foreign schema named evalwatch', async () => {
    await using db = await open();
    await db.query('CREATE SCHEMA evalwatch');
    const error = await db.worker().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'StoreError', reason: 'other' });
    expect(String(error)).toContain('that is not a store of evalwatch: name another database');
  });

  it('rejects a reader before it is created', async () => {
    await using db = await open();
    await expect(openPostgresReader({ clock: systemClock, url: db.url })).rejects.toThrow(
      'there is no store',
    );
  });

  it('skips an unreachable host and rejects a server that is read-only', async () => {
    await using db = await open();
    const { url } = db;
    await db.owner(['p'], { url: url.replace('127.0.0.1:', '127.0.0.1:1,127.0.0.1:') });
    await db.query(`ALTER DATABASE ${db.name} SET default_transaction_read_only = on`);
    await expect(openPostgresReader({ clock: systemClock, url })).rejects.toThrow('takes writes');
  });

  it('answers reads while a commit waits', async () => {
    await using db = await open();
    const worker = await db.owner(['p']);
    const blocking = await db.begin('SELECT FROM evalwatch.record FOR UPDATE');
    const committing = worker.see('p', { x: 'FAILED' });
    await db.untilWaiting(1);
    expect(await worker.store.projects()).toEqual(['p']);
    // It has not failed before that.
    expect(worker.log.of('store.commit_failed')).toEqual([]);
    await blocking.query('ROLLBACK');
    expect(await committing).toHaveLength(1);
  });

  it('makes 20 reads wait for a free connection instead of failing', async () => {
    await using db = await open();
    const worker = await db.worker();
    await worker.store.configureProjects(['p'], 1);
    const blocking = await db.begin('LOCK evalwatch.project');
    const reading = Promise.all(Array.from({ length: 20 }, () => worker.store.projects()));
    // The pool would have given up by now.
    await setTimeout(CONNECT_MS + 500);
    await blocking.query('ROLLBACK');

    expect(await reading).toEqual(Array.from({ length: 20 }, () => ['p']));
  });

  it('keeps its other connections if no new one can be opened', async () => {
    await using db = await open();
    const { name, server } = db;
    const worker = await db.worker({ url: db.url.replace('127.0.0.1:', '127.0.0.1:1,127.0.0.1:') });
    const read = () => worker.store.projects();
    // Each read opens its own connection.
    await Promise.all([read(), read(), read(), read()]);
    const pids = `SELECT pid FROM pg_stat_activity
      WHERE datname = '${name}' AND application_name = 'evalwatch' ORDER BY backend_start`;
    const [one, ...others] = await server.query('postgres', pids);
    await server.query('postgres', `ALTER DATABASE ${name} ALLOW_CONNECTIONS false`);
    await server.query('postgres', 'SELECT pg_terminate_backend($1)', [one?.['pid']]);
    const gone = `SELECT FROM pg_stat_activity WHERE pid = ${Number(one?.['pid'])}`;
    await server.untilRows('postgres', gone, (rows) => rows === 0);
    // A statement on it would fail with the last message of the server, which has arrived and is read by then.
    await setImmediate();

    const outcomes = await Promise.allSettled([read(), read(), read(), read()]);

    expect(outcomes.map(({ status }) => status)).toContain('rejected');
    expect(await read()).toEqual([]);
    expect(await server.query('postgres', pids)).toHaveLength(others.length);
    await server.query('postgres', `ALTER DATABASE ${name} ALLOW_CONNECTIONS true`);
    expect(await Promise.all([read(), read(), read(), read()])).toHaveLength(4);
  });

  it('works without prepared statements', async () => {
    await using db = await open();
    const worker = await db.owner(['p'], { url: `${db.url}?prepared=false` });
    expect(await worker.see('p', { x: 'FAILED' })).toHaveLength(1);
  });

  it('includes no part of its connection string in errors', async () => {
    await using db = await open();
    const { url, name, server } = db;
    const failing = [
      url.replace(encodeURIComponent(PASSWORD), 'wrong-password'),
      url.replace('evalwatch_owner', 'nobody_known'),
      url.replace(name, 'no_such_database'),
      url.replace(`:${server.port}/`, ':1/'),
      url.replace('127.0.0.1', 'no-such-host.invalid'),
      `${url}?sslmode=require`,
    ];
    for (const wrong of failing) {
      const error: unknown = await db.worker({ url: wrong }).catch((thrown: unknown) => thrown);
      if (!(error instanceof Error)) throw new Error('it opened');
      const said = `${error.message} ${error.stack} ${String(error.cause)} ${JSON.stringify(error)}`;
      expect(error.name).toBe('StoreError');
      expect(error.cause).toBeUndefined();
      for (const secret of [
        PASSWORD,
        encodeURIComponent(PASSWORD),
        'wrong-password',
        'nobody_known',
        'evalwatch_owner',
        'no_such_database',
        'no-such-host',
        name,
      ]) {
        expect(said).not.toContain(secret);
      }
    }
  });

  it('connects over TLS and verifies the authority and the host name of the certificate', async () => {
    await using directory = await temporaryDirectory();
    const authority = makeCertificate(directory.path, 'authority');
    const other = makeCertificate(directory.path, 'other');
    const certificate = makeCertificate(directory.path, 'server', authority);
    await using secure = await startPostgres({ certificate });
    const { url, name } = await secure.createDatabase();
    const openWith = async (parameters: string, host = '127.0.0.1') => {
      const worker = await startWorker(url.replace('127.0.0.1', host) + parameters);
      await worker[Symbol.asyncDispose]();
    };

    await openWith(`?sslmode=verify-full&sslrootcert=${authority.certFile}`);
    await openWith(`?sslmode=verify-ca&sslrootcert=${authority.certFile}`, 'localhost');
    await openWith('?sslmode=require');
    const wrong = [
      [`?sslmode=verify-full&sslrootcert=${other.certFile}`, '127.0.0.1'],
      [`?sslmode=verify-ca&sslrootcert=${other.certFile}`, '127.0.0.1'],
      ['?sslmode=verify-full', '127.0.0.1'],
      [`?sslmode=verify-full&sslrootcert=${authority.certFile}`, 'localhost'],
    ] as const;
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
    onTestFinished(() => void vi.unstubAllEnvs());
    for (const [parameters, host] of wrong) {
      await expect(openWith(parameters, host)).rejects.toMatchObject({ reason: 'io' });
    }
    expect(await secure.query(name, 'SELECT FROM evalwatch.worker')).toHaveLength(3);
  });

  it('rejects a server older than PostgreSQL 15', async () => {
    await using db = await open();
    const { port } = db.server;
    await using old = await startOlderServer(port);
    const url = db.url.replace(`:${port}/`, `:${old.port}/`);
    await expect(db.worker({ url })).rejects.toThrow(
      'is of PostgreSQL 14, and evalwatch needs 15 or newer',
    );
  });

  describe.runIf(pgbouncer !== undefined || IN_CI)('behind a connection pooler', () => {
    it('serves workers whose transactions share pooled connections', async () => {
      await using db = await open();
      await using pooler = await startPooler(db.server, {
        default_pool_size: '2',
        ignore_startup_parameters: BELTS,
      });
      const url = pooler.url(db.name, '?prepared=false');
      const one = await db.worker({ url });
      const other = await db.worker({ url });
      const projects = Array.from({ length: 12 }, (_, n) => `p${n}`);
      await one.store.configureProjects(projects, 1);
      const [ofOne, ofOther] = await Promise.all([
        one.claim(projects.slice(0, 6)),
        other.claim(projects.slice(6)),
      ]);
      expect([...ofOne, ...ofOther].toSorted()).toEqual(projects.toSorted());

      for (const status of ['RUNNING', 'FAILED', 'PENDING']) {
        await Promise.all([
          ...ofOne.map((project) => one.see(project, { x: status })),
          ...ofOther.map((project) => other.see(project, { x: status })),
        ]);
      }
      const [taken = ''] = ofOne;
      await one.release([taken]);
      expect(await other.claim([taken, ...ofOther])).toEqual([taken]);
      expect(await one.see(taken, { x: 'RUNNING' })).toBeUndefined();
      expect(one.log.of('store.commit_refused')).toMatchObject([{ project: taken }]);
      const transitions = await one.store.transitions({});
      expect(transitions.map(({ project, to }) => `${project} ${to}`).toSorted()).toEqual(
        projects.flatMap((project) => [`${project} FAILED`, `${project} PENDING`]).toSorted(),
      );
    });

    it('names the pooler setting to change if startup parameters are rejected', async () => {
      await using db = await open();
      await using pooler = await startPooler(db.server);
      const opening = openPostgresReader({
        clock: systemClock,
        url: pooler.url(db.name, '?prepared=false'),
      });
      await expect(opening).rejects.toThrow(`ignore_startup_parameters = ${BELTS}`);
      await expect(opening).rejects.not.toThrow(PASSWORD);
    });
  });
});

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
