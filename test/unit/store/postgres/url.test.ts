import { describe, expect, it } from 'vitest';
import { readUrl } from '../../../../src/store/postgres/url.ts';

describe('a connection string', () => {
  it('is parsed into user, password, database, servers and secrets', async () => {
    expect(
      await readUrl('postgres://me:p%40ss%2F@one:5433,two/monitor?sslmode=verify-full'),
    ).toEqual({
      user: 'me',
      password: 'p@ss/',
      database: 'monitor',
      prepared: true,
      servers: [
        { host: 'one', port: 5433, tls: { servername: 'one', rejectUnauthorized: true } },
        { host: 'two', port: 5432, tls: { servername: 'two', rejectUnauthorized: true } },
      ],
      secrets: expect.arrayContaining(['p@ss/', 'p%40ss%2F', 'me', 'monitor', 'one', 'two']),
    });
  });

  it.each([
    [
      'postgresql://me@db',
      { host: 'db', port: 5432, tls: { servername: 'db', rejectUnauthorized: true } },
    ],
    ['postgres://me@127.0.0.1', { host: '127.0.0.1', port: 5432, tls: false }],
    ['postgres://me@localhost', { host: 'localhost', port: 5432, tls: false }],
    ['postgres://me@/d', { host: 'localhost', port: 5432, tls: false }],
    ['postgres://me@[::1]:7/d', { host: '::1', port: 7, tls: false }],
    [
      'postgres://me@10.0.0.1',
      { host: '10.0.0.1', port: 5432, tls: { host: '10.0.0.1', rejectUnauthorized: true } },
    ],
    ['postgres://me@db?sslmode=disable', { host: 'db', port: 5432, tls: false }],
    [
      'postgres://me@db?sslmode=require',
      { host: 'db', port: 5432, tls: { servername: 'db', rejectUnauthorized: false } },
    ],
    [
      'postgres://me@db?sslmode=disable&target_session_attrs=read-write',
      { host: 'db', port: 5432, tls: false },
    ],
    ['postgres://me@/d?host=/run/pg&port=7', { host: '/run/pg', port: 7, tls: false }],
  ])('%s resolves to %j', async (url, server) => {
    expect((await readUrl(url)).servers).toEqual([server]);
  });

  it('disables prepared statements with prepared=false', async () => {
    expect((await readUrl('postgres://me@db/d?prepared=false')).prepared).toBe(false);
  });

  it.each([
    ['mysql://me@db', 'is not of the form'],
    ['secret', 'is not of the form'],
    ['postgres://me:se@cret@db', 'is not of the form'],
    ['postgres://db/d', 'names no user'],
    ['postgres://me:secret%@db', 'percent-encoding'],
    ['postgres://me@db:secret', 'host:port'],
    ['postgres://me@db:0', 'host:port'],
    ['postgres://me@db?secret=1', 'a parameter that is not one of'],
    ['postgres://me@db?sslmode=secret', 'sslmode that is not one of'],
    ['postgres://me@db?sslrootcert=/secret', 'sslrootcert that cannot be read'],
    ['postgres://me@db?target_session_attrs=standby', 'target_session_attrs that is not one of'],
  ])('%s is rejected with a message that does not show it', async (url, message) => {
    const error: unknown = await readUrl(url).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ message: expect.stringContaining(message) });
    expect(String(error)).not.toMatch(/secret|se@|cret/);
  });
});
