import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chownSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { chmod, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Client } from 'pg';
import type { Certificate } from './certificates.ts';
import { installDebianPackages } from './debian-tool.ts';
import { freePort } from './free-port.ts';
import { directoryInMemory, temporaryDirectory } from './temporary.ts';

const INSTALLED = '/usr/lib/postgresql';
/** Appears in every connection string, and must appear nowhere else. */
export const PASSWORD = 'pw%:/?#@Zz9';
export const USER = 'evalwatch_owner';

/** Result of the first call of {@link postgresPrograms}. */
let found: { readonly programs: string | undefined } | undefined;

/**
 * Returns the directory of `initdb` and `postgres`; undefined if there is none, and tests that need them are skipped. The
 * first call installs them from Debian if they are missing and that is possible.
 */
export function postgresPrograms(): string | undefined {
  found ??= {
    programs: findPrograms() ?? (installDebianPackages('postgresql') ? findPrograms() : undefined),
  };
  return found.programs;
}

function findPrograms(): string | undefined {
  if (!existsSync(INSTALLED)) return undefined;
  return readdirSync(INSTALLED)
    .toSorted((one, other) => Number(other) - Number(one))
    .map((version) => join(INSTALLED, version, 'bin'))
    .find((directory) => existsSync(join(directory, 'initdb')));
}

export interface PostgresServer extends AsyncDisposable {
  readonly port: number;
  /** Id of the server's main process. */
  pid(): number;
  url(database: string, parameters?: string): string;
  createDatabase(): Promise<{ readonly name: string; readonly url: string }>;
  /** Runs one statement on a new connection. */
  query(
    database: string,
    text: string,
    values?: readonly unknown[],
  ): Promise<Record<string, unknown>[]>;
  /** Repeats a query in this database, on one connection, until the number of its rows is as wanted. */
  untilRows(database: string, text: string, isWanted: (rows: number) => boolean): Promise<void>;
  /** The test closes the connection. */
  connect(database: string): Promise<Client>;
  /** Stops all its processes by SIGSTOP until the returned function is called. */
  freeze(): () => void;
  /** Ends every process of it at once by SIGKILL. */
  kill(): Promise<void>;
  start(): Promise<void>;
}

export interface PostgresServerOptions {
  /** Whether commits survive a crash of the computer. Default false, which is faster. */
  readonly fsync?: boolean;
  /** Further settings, such as `wal_compression=on`. */
  readonly settings?: readonly string[];
  /** Certificate for TLS; absent: no TLS. */
  readonly certificate?: Pick<Certificate, 'cert' | 'key'>;
}

const STANDBY_TRIES = 600;
/** Environment variable with the directory for the files that new servers copy. */
export const POSTGRES_TEMPLATE = 'EVALWATCH_POSTGRES_TEMPLATE';

/** Starts a real server on 127.0.0.1 and on a socket in its directory, as user `postgres` if we are root. */
export async function startPostgres(options: PostgresServerOptions = {}): Promise<PostgresServer> {
  const place = await makePlace(options.fsync === true);
  const passwordFile = join(place.directory, 'password');
  writeFileSync(passwordFile, PASSWORD);
  const access = ['-U', USER, '-A', 'scram-sha-256', `--pwfile=${passwordFile}`];
  const format = ['-E', 'UTF8', '--locale=C', '--no-sync'];
  await makeCluster(place, [...access, ...format]);
  for (const [file, text] of [
    ['server.crt', options.certificate?.cert],
    ['server.key', options.certificate?.key],
  ] as const) {
    if (text === undefined) continue;
    writeFileSync(join(place.data, file), text, { mode: 0o600 });
    if (place.account !== undefined) {
      chownSync(join(place.data, file), place.account.uid, place.account.gid);
    }
  }
  const tls = options.certificate === undefined ? [] : ['ssl=on'];
  return await serve(place, await freePort(), [
    `fsync=${options.fsync === true ? 'on' : 'off'}`,
    ...tls,
    ...(options.settings ?? []),
  ]);
}

/** Creates the files of a new server. A test run creates them once and copies them for each server, which is much faster. */
async function makeCluster(place: Place, options: readonly string[]): Promise<void> {
  const directory = process.env[POSTGRES_TEMPLATE];
  if (directory === undefined) {
    await place.run('initdb', ['-D', place.data, ...options]);
    return;
  }
  const template = join(directory, 'data');
  if (!existsSync(template)) {
    const made = join(directory, randomUUID());
    await place.run('initdb', ['-D', made, ...options]);
    // Another process may have been faster.
    await rename(made, template).catch(() => rm(made, { recursive: true }));
  }
  await promisify(execFile)('cp', ['-a', template, place.data], { ...place.account });
}

/**
 * Starts a standby of `primary`. From then on each commit of `primary` waits until both servers have it. The standby rejects
 * writes before {@link promote}.
 */
export async function startStandby(
  primary: PostgresServer,
  port?: number,
): Promise<PostgresServer> {
  const place = await makePlace(true);
  const from = ['-d', primary.url('postgres'), '-R', '-X', 'stream', '-c', 'fast', '--no-sync'];
  await place.run('pg_basebackup', ['-D', place.data, ...from]);
  const standby = await serve(place, port ?? (await freePort()), ['fsync=on']);
  // Set after the backup, which copies the configuration: otherwise the standby would wait for a standby, too.
  await primary.query('postgres', "ALTER SYSTEM SET synchronous_standby_names = '*'");
  await primary.query('postgres', 'SELECT pg_reload_conf()');
  for (let tries = 0; tries < STANDBY_TRIES; tries += 1) {
    const rows = await primary.query('postgres', 'SELECT sync_state FROM pg_stat_replication');
    if (rows[0]?.['sync_state'] === 'sync') return standby;
    await setTimeout(50);
  }
  await standby[Symbol.asyncDispose]();
  throw new Error('the standby does not follow');
}

/** Makes a standby the server that takes writes. */
export async function promote(standby: PostgresServer): Promise<void> {
  const [row] = await standby.query('postgres', 'SELECT pg_promote() AS done');
  if (row?.['done'] !== true) throw new Error('the standby was not promoted');
}

/** Files of a server, and the account that runs it. */
interface Place {
  readonly directory: string;
  readonly data: string;
  readonly programs: string;
  readonly account: Account | undefined;
  /** Runs a program of PostgreSQL to its end. */
  run(program: string, args: readonly string[]): Promise<void>;
  remove(): Promise<void>;
}

interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** @param onDisk whether the files go where temporary files usually go, even if there is room in memory */
async function makePlace(onDisk: boolean): Promise<Place> {
  const programs = postgresPrograms();
  if (programs === undefined) throw new Error('there is no PostgreSQL here');
  const account = process.getuid?.() === 0 ? accountOf('postgres') : undefined;
  const temporary = await (onDisk ? temporaryDirectory() : directoryInMemory());
  const directory = temporary.path;
  await chmod(directory, 0o755);
  if (account !== undefined) chownSync(directory, account.uid, account.gid);
  return {
    directory,
    data: join(directory, 'data'),
    programs,
    account,
    run: async (program, args) => {
      // Does not block: the clients of the servers may be connected through this process.
      await promisify(execFile)(join(programs, program), [...args], { ...account, cwd: directory });
    },
    remove: async () => {
      await temporary[Symbol.asyncDispose]();
    },
  };
}

/** Starts the server whose files are in `place`. */
async function serve(
  place: Place,
  port: number,
  settings: readonly string[],
): Promise<PostgresServer> {
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

  async function untilRows(database: string, text: string, isWanted: (rows: number) => boolean) {
    const client = await connect(database);
    try {
      while (!isWanted((await client.query(text)).rows.length)) await setTimeout(20);
    } finally {
      await client.end();
    }
  }

  async function start(): Promise<void> {
    const all = [
      'listen_addresses=127.0.0.1',
      `port=${port}`,
      `unix_socket_directories=${place.directory}`,
      ...settings,
    ];
    running = spawn(
      join(place.programs, 'postgres'),
      ['-D', place.data, ...all.flatMap((one) => ['-c', one])],
      { ...place.account, cwd: place.directory, stdio: 'ignore' },
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
    if (running?.pid === undefined || running.exitCode !== null || running.signalCode !== null) {
      return;
    }
    const exited = once(running, 'exit');
    // Its processes would notice its end only when they are idle. While it is stopped, it starts no more of them.
    if (signal === 'SIGKILL') running.kill('SIGSTOP');
    const others = signal === 'SIGKILL' ? childrenOf(running.pid) : [];
    for (const pid of others) send(pid, signal);
    running.kill(signal);
    await exited;
    // Until the last one has ended, a new server finds their memory in use.
    while (others.some((pid) => send(pid, 0))) await setTimeout(5);
  }

  try {
    await start();
  } catch (error) {
    await stop('SIGKILL');
    await place.remove();
    throw error;
  }
  return {
    port,
    pid: () => running?.pid ?? 0,
    url,
    connect,
    query,
    untilRows,
    createDatabase: async () => {
      databases += 1;
      const name = `test_${databases}`;
      // Copying files takes less CPU time than logging each of their pages.
      await query('postgres', `CREATE DATABASE ${name} STRATEGY file_copy`);
      return { name, url: url(name) };
    },
    freeze: () => {
      const pid = running?.pid ?? 0;
      const pids = [pid, ...childrenOf(pid)];
      for (const one of pids) send(one, 'SIGSTOP');
      return () => {
        for (const one of pids) send(one, 'SIGCONT');
      };
    },
    kill: () => stop('SIGKILL'),
    start,
    [Symbol.asyncDispose]: async () => {
      await stop('SIGQUIT');
      await place.remove();
    },
  };
}

/** Returns whether the process exists. */
function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

function childrenOf(pid: number): readonly number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return text.split(' ').filter(Boolean).map(Number);
}

export function accountOf(name: string): Account {
  const id = (option: string) => Number(execFileSync('id', [option, name], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}
