import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, writeFileSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { Client } from 'pg';
import { debianTool } from './debian-tool.ts';
import { freePort } from './free-port.ts';
import { accountOf, PASSWORD, type PostgresServer, USER } from './postgres.ts';
import { temporaryDirectory } from './temporary.ts';

/** Path of PgBouncer, installed from Debian if possible; otherwise undefined, and tests that need it are skipped. */
export const pgbouncer = debianTool('pgbouncer', 'pgbouncer', '/usr/sbin/pgbouncer');

export interface Pooler extends AsyncDisposable {
  url(database: string, parameters?: string): string;
}

/** Starts PgBouncer in front of this server, by default with transaction pooling. */
export async function startPooler(
  server: PostgresServer,
  settings: Readonly<Record<string, string>> = {},
): Promise<Pooler> {
  if (pgbouncer === undefined) throw new Error('there is no PgBouncer here');
  const account = process.getuid?.() === 0 ? accountOf('postgres') : undefined;
  const directory = await temporaryDirectory();
  await chmod(directory.path, 0o755);
  const port = await freePort();
  const users = join(directory.path, 'users.txt');
  const file = join(directory.path, 'pgbouncer.ini');
  const options = {
    listen_addr: '127.0.0.1',
    listen_port: String(port),
    unix_socket_dir: '',
    auth_type: 'scram-sha-256',
    auth_file: users,
    pool_mode: 'transaction',
    default_pool_size: '3',
    ...settings,
  };
  writeFileSync(users, `"${USER}" "${PASSWORD}"\n`, { mode: 0o600 });
  writeFileSync(
    file,
    [
      '[databases]',
      `* = host=127.0.0.1 port=${server.port}`,
      '[pgbouncer]',
      ...Object.entries(options).map(([name, value]) => `${name} = ${value}`),
    ].join('\n'),
  );
  if (account !== undefined) chownSync(users, account.uid, account.gid);
  const running = spawn(pgbouncer, ['-q', file], { ...account, stdio: 'ignore' });
  try {
    await untilItAnswers(running, port);
  } catch (error) {
    running.kill('SIGKILL');
    await directory[Symbol.asyncDispose]();
    throw error;
  }
  return {
    url: (database, parameters) =>
      server.url(database, parameters).replace(`:${server.port}/`, `:${port}/`),
    [Symbol.asyncDispose]: async () => {
      const exited = once(running, 'exit');
      running.kill('SIGQUIT');
      await exited;
      await directory[Symbol.asyncDispose]();
    },
  };
}

async function untilItAnswers(running: ChildProcess, port: number): Promise<void> {
  for (let tries = 0; ; tries += 1) {
    const client = new Client({
      host: '127.0.0.1',
      port,
      user: USER,
      password: PASSWORD,
      database: 'postgres',
    });
    try {
      await client.connect();
      await client.end();
      return;
    } catch (error) {
      if (tries > 200 || running.exitCode !== null) {
        throw new Error('PgBouncer does not answer', { cause: error });
      }
      await setTimeout(50);
    }
  }
}
