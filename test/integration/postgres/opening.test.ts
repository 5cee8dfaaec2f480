import { setImmediate, setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { openPostgresReader } from '../../../src/store/postgres/postgres-reader.ts';
import { makeCertificate } from '../../support/certificates.ts';
import { healthAt, startWorker } from '../../support/postgres-store.ts';
import { startPostgres } from '../../support/postgres.ts';
import { PASSWORD, postgresPrograms, type PostgresServer } from '../../support/postgres-server.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

describe.skipIf(postgresPrograms() === undefined)('a PostgreSQL store', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  it('is created once by workers that start together', async () => {
    const { url, name } = await server.createDatabase();
    const workers = await Promise.all(Array.from({ length: 4 }, () => startWorker(url)));
    const [row] = await server.query(name, 'SELECT * FROM evalwatch.schema_version');
    expect(row).toMatchObject({ version: 5, compatible_from: 1 });
    expect(workers[0]?.store.serverVersion).toMatch(/^\d+\.\d+$/);
    for (const worker of workers) await worker[Symbol.asyncDispose]();
  });

  it.each(['repeatable read', 'serializable'])(
    'is created once by concurrent workers if the default isolation level is %s',
    async (isolation) => {
      const { url, name } = await server.createDatabase();
      const setting = `default_transaction_isolation = '${isolation}'`;
      await server.query(name, `ALTER DATABASE ${name} SET ${setting}`);
      // The holder of the lock makes the schema. All others found none before they waited for the lock.
      const blocking = await server.connect(name);
      await blocking.query('BEGIN');
      await blocking.query('SELECT pg_advisory_xact_lock($1)', [0x45565754]);
      const starting = Array.from({ length: 3 }, () => startWorker(url));
      const waiting = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
      await server.untilRows('postgres', waiting, (rows) => rows >= 3);
      await blocking.query('COMMIT');
      await blocking.end();

      const workers = await Promise.all(starting);
      const [row] = await server.query(name, 'SELECT * FROM evalwatch.schema_version');
      expect(row).toMatchObject({ version: 5 });
      for (const worker of workers) await worker[Symbol.asyncDispose]();
    },
  );

  it.each(['LATIN1', 'SQL_ASCII'])('rejects a database with the encoding %s', async (encoding) => {
    const name = `encoding_${encoding.toLowerCase()}`;
    const making = `CREATE DATABASE ${name} ENCODING '${encoding}' LC_COLLATE 'C' LC_CTYPE 'C'`;
    await server.query('postgres', `${making} TEMPLATE template0`);
    const expected = `the database of store.postgres_url_file or _env has the encoding ${encoding}, and evalwatch needs UTF8`;
    await expect(startWorker(server.url(name))).rejects.toThrow(expected);
    await expect(openPostgresReader({ clock: systemClock, url: server.url(name) })).rejects.toThrow(
      expected,
    );
  });

  it.each([
    ['of a newer version that this one can work with', 'version = 9, compatible_from = 1', 'done'],
    [
      'of a newer version that it cannot work with',
      'version = 9, compatible_from = 6',
      'the database of store.postgres_url_file or _env has schema version 9, this evalwatch supports 5: run the newer evalwatch that wrote it',
    ],
  ])('opens only if its schema is compatible: %s', async (_name, change, outcome) => {
    const { url, name } = await server.createDatabase();
    await (await startWorker(url))[Symbol.asyncDispose]();
    await server.query(name, `UPDATE evalwatch.schema_version SET ${change}`);
    const attempts = [
      async () => (await startWorker(url))[Symbol.asyncDispose](),
      async () => (await openPostgresReader({ clock: systemClock, url })).close(),
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
    const { url, name } = await server.createDatabase();
    await server.query(name, 'CREATE SCHEMA evalwatch');
    const error = await startWorker(url).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'StoreError', reason: 'other' });
    expect(String(error)).toContain('that is not a store of evalwatch: name another database');
  });

  it('rejects a reader before it is created', async () => {
    const { url } = await server.createDatabase();
    await expect(openPostgresReader({ clock: systemClock, url })).rejects.toThrow(
      'there is no store',
    );
  });

  it('skips an unreachable host and rejects a server that is read-only', async () => {
    const { url, name } = await server.createDatabase();
    const several = url.replace('127.0.0.1:', `127.0.0.1:1,127.0.0.1:`);
    await using worker = await startWorker(several);
    await worker.store.configureProjects(['p'], 1);
    await server.query(name, `ALTER DATABASE ${name} SET default_transaction_read_only = on`);
    await expect(openPostgresReader({ clock: systemClock, url })).rejects.toThrow('takes writes');
  });

  it('makes 20 reads wait for a free connection instead of failing', async () => {
    const { url, name } = await server.createDatabase();
    await using worker = await startWorker(url);
    await worker.store.configureProjects(['p'], 1);
    const blocking = await server.connect(name);
    await blocking.query('BEGIN');
    await blocking.query('LOCK evalwatch.project');
    const reading = Promise.all(Array.from({ length: 20 }, () => worker.store.projects()));
    await setTimeout(4000);
    await blocking.query('ROLLBACK');
    await blocking.end();

    expect(await reading).toEqual(Array.from({ length: 20 }, () => ['p']));
  });

  it('keeps its other connections if no new one can be opened', async () => {
    const { url, name } = await server.createDatabase();
    await using worker = await startWorker(url.replace('127.0.0.1:', '127.0.0.1:1,127.0.0.1:'));
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
    const { url } = await server.createDatabase();
    await using worker = await startWorker(`${url}?prepared=false`);
    await worker.store.configureProjects(['p'], 1);
    await worker.claim(['p']);
    await worker.see('p', { x: 'RUNNING' });
    expect(await worker.see('p', { x: 'FAILED' })).toHaveLength(1);
  });

  it('includes no part of its connection string in errors', async () => {
    const { url, name } = await server.createDatabase();
    const failing = [
      url.replace(encodeURIComponent(PASSWORD), 'wrong-password'),
      url.replace('evalwatch_owner', 'nobody_known'),
      url.replace(name, 'no_such_database'),
      url.replace(`:${server.port}/`, ':1/'),
      url.replace('127.0.0.1', 'no-such-host.invalid'),
      `${url}?sslmode=require`,
    ];
    for (const wrong of failing) {
      const error: unknown = await startWorker(wrong).catch((thrown: unknown) => thrown);
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

  it('stores control characters and other hostile text in ids and errors', async () => {
    const { url } = await server.createDatabase();
    await using worker = await startWorker(url);
    const hostile = [
      '\u0000',
      '\u0001',
      '\u0001\u0001',
      'a\u0000',
      '\\u0000',
      '{"a":1}',
      "');--",
      '\uFFFF',
    ];
    await worker.store.configureProjects(hostile, 1);
    expect(await worker.claim(hostile)).toEqual(hostile.toSorted());
    for (const project of hostile) {
      await worker.see(project, Object.fromEntries(hostile.map((id) => [id, 'RUNNING'])));
      await worker.see(project, Object.fromEntries(hostile.map((id) => [id, 'FAILED'])));
      await worker.store.commitPoll({
        project,
        at: 9,
        health: healthAt(9),
        version: 0,
        listings: new Map(),
      });
    }
    await worker.store.flush();
    const text = 'half \uD83D, nothing \u0000, one \u0001';
    for (const failure of await worker.store.pendingFailures({ limitPerProject: 9 })) {
      const settlement = {
        errorInfo: { error_id: text, error_msg: text },
        errorMsgTruncated: true,
      };
      await worker.store.settleFailure(failure, settlement, 5);
    }

    expect(worker.log.of('store.commit_refused')).toEqual([]);
    const failures = await worker.store.failures({});
    expect(failures).toHaveLength(hostile.length ** 2);
    expect(
      new Set(failures.map(({ project, promptId }) => JSON.stringify([project, promptId]))).size,
    ).toBe(hostile.length ** 2);
    expect(failures[0]?.settlement?.errorInfo?.error_msg).toBe(text.toWellFormed());
  });

  it('connects over TLS and verifies the authority and the host name of the certificate', async () => {
    await using directory = await temporaryDirectory();
    const authority = makeCertificate(directory.path, 'authority');
    const other = makeCertificate(directory.path, 'other');
    const certificate = makeCertificate(directory.path, 'server', authority);
    await using secure = await startPostgres({ certificate });
    const { url, name } = await secure.createDatabase();
    const open = async (parameters: string, host = '127.0.0.1') => {
      const worker = await startWorker(url.replace('127.0.0.1', host) + parameters);
      await worker[Symbol.asyncDispose]();
    };

    await open(`?sslmode=verify-full&sslrootcert=${authority.certFile}`);
    await open(`?sslmode=verify-ca&sslrootcert=${authority.certFile}`, 'localhost');
    await open('?sslmode=require');
    const wrong = [
      [`?sslmode=verify-full&sslrootcert=${other.certFile}`, '127.0.0.1'],
      [`?sslmode=verify-ca&sslrootcert=${other.certFile}`, '127.0.0.1'],
      ['?sslmode=verify-full', '127.0.0.1'],
      [`?sslmode=verify-full&sslrootcert=${authority.certFile}`, 'localhost'],
    ] as const;
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
    onTestFinished(() => void vi.unstubAllEnvs());
    for (const [parameters, host] of wrong) {
      await expect(open(parameters, host)).rejects.toMatchObject({ reason: 'io' });
    }
    expect(await secure.query(name, 'SELECT FROM evalwatch.worker')).toHaveLength(3);
  });
});
