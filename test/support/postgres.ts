import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, readdirSync, writeFileSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { Client } from 'pg';
import type { Certificate } from './certificates.ts';
import { installDebianPackages } from './debian-tool.ts';
import { temporaryDirectory } from './temporary.ts';

const INSTALLED = '/usr/lib/postgresql';
/** Appears in every connection string, and must appear nowhere else. */
export const PASSWORD = 'pw%:/?#@Zz9';
const USER = 'evalwatch_owner';

/** Where `initdb` and `postgres` are; installed from Debian if that can be, otherwise undefined, and what needs it is skipped. */
export const postgresPrograms =
  findPrograms() ?? (installDebianPackages('postgresql') ? findPrograms() : undefined);

function findPrograms(): string | undefined {
  if (!existsSync(INSTALLED)) return undefined;
  return readdirSync(INSTALLED)
    .toSorted((one, other) => Number(other) - Number(one))
    .map((version) => join(INSTALLED, version, 'bin'))
    .find((directory) => existsSync(join(directory, 'initdb')));
}

export interface PostgresServer extends AsyncDisposable {
  readonly port: number;
  /** Of the process that has all the others. */
  pid(): number;
  /** Of this database. */
  url(database: string, parameters?: string): string;
  /** A new, empty database. */
  createDatabase(): Promise<{ readonly name: string; readonly url: string }>;
  /** One statement in this database, on a connection of its own. */
  query(
    database: string,
    text: string,
    values?: readonly unknown[],
  ): Promise<Record<string, unknown>[]>;
  /** A connection that is left to the test. */
  connect(database: string): Promise<Client>;
  /** Ends every process of it at once, as a crash does. */
  kill(): Promise<void>;
  start(): Promise<void>;
}

export interface PostgresServerOptions {
  /** Off is fast, and loses what was committed if the computer crashes. */
  readonly fsync?: boolean;
  /** Further ones, such as `wal_compression=on`. */
  readonly settings?: readonly string[];
  /** Offers TLS with this one. */
  readonly certificate?: Pick<Certificate, 'cert' | 'key'>;
}

/** A real server of its own, on 127.0.0.1 and on a socket in its directory; as user `postgres` where we are root. */
export async function startPostgres(options: PostgresServerOptions = {}): Promise<PostgresServer> {
  const programs = postgresPrograms;
  if (programs === undefined) throw new Error('there is no PostgreSQL here');
  const account = process.getuid?.() === 0 ? accountOf('postgres') : undefined;
  const directory = await temporaryDirectory();
  await chmod(directory.path, 0o755);
  if (account !== undefined) chownSync(directory.path, account.uid, account.gid);
  const data = join(directory.path, 'data');
  const passwordFile = join(directory.path, 'password');
  writeFileSync(passwordFile, PASSWORD);
  execFileSync(
    join(programs, 'initdb'),
    [
      '-D',
      data,
      '-U',
      USER,
      '-A',
      'scram-sha-256',
      `--pwfile=${passwordFile}`,
      '-E',
      'UTF8',
      '--locale=C',
      '--no-sync',
    ],
    { ...account, stdio: ['ignore', 'ignore', 'inherit'] },
  );
  const tls = options.certificate === undefined ? [] : ['ssl=on'];
  for (const [file, text] of [
    ['server.crt', options.certificate?.cert],
    ['server.key', options.certificate?.key],
  ] as const) {
    if (text === undefined) continue;
    writeFileSync(join(data, file), text, { mode: 0o600 });
    if (account !== undefined) chownSync(join(data, file), account.uid, account.gid);
  }
  const port = await freePort();
  let running: ChildProcess | undefined;
  let databases = 0;

  const url = (database: string, parameters = '') =>
    `postgres://${USER}:${encodeURIComponent(PASSWORD)}@127.0.0.1:${port}/${database}${parameters}`;

  async function connect(database: string): Promise<Client> {
    const client = new Client({
      host: '127.0.0.1',
      port,
      user: USER,
      password: PASSWORD,
      database,
    });
    client.on('error', () => undefined);
    await client.connect();
    return client;
  }

  async function query(database: string, text: string, values: readonly unknown[] = []) {
    const client = await connect(database);
    try {
      return (await client.query<Record<string, unknown>>(text, [...values])).rows;
    } finally {
      await client.end();
    }
  }

  async function start(): Promise<void> {
    const settings = [
      'listen_addresses=127.0.0.1',
      `port=${port}`,
      `unix_socket_directories=${directory.path}`,
      `fsync=${options.fsync === true ? 'on' : 'off'}`,
      ...tls,
      ...(options.settings ?? []),
    ];
    running = spawn(
      join(programs ?? '', 'postgres'),
      ['-D', data, ...settings.flatMap((one) => ['-c', one])],
      {
        ...account,
        cwd: directory.path,
        stdio: 'ignore',
      },
    );
    const exited = once(running, 'exit');
    for (let tries = 0; ; tries += 1) {
      try {
        await query('postgres', 'SELECT 1');
        return;
      } catch (error) {
        if (tries > 600) throw error;
        await Promise.race([
          setTimeout(50),
          exited.then(() => {
            throw new Error('the PostgreSQL server ended', { cause: error });
          }),
        ]);
      }
    }
  }

  async function stop(signal: NodeJS.Signals): Promise<void> {
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return;
    const exited = once(running, 'exit');
    running.kill(signal);
    await exited;
  }

  await start();
  return {
    port,
    pid: () => running?.pid ?? 0,
    url,
    connect,
    query,
    createDatabase: async () => {
      databases += 1;
      const name = `test_${databases}`;
      await query('postgres', `CREATE DATABASE ${name}`);
      return { name, url: url(name) };
    },
    // An immediate shutdown: no checkpoint, no goodbye.
    kill: () => stop('SIGQUIT'),
    start,
    [Symbol.asyncDispose]: async () => {
      await stop('SIGINT');
      await directory[Symbol.asyncDispose]();
    },
  };
}

function accountOf(name: string): { readonly uid: number; readonly gid: number } {
  const id = (option: string) => Number(execFileSync('id', [option, name], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}
