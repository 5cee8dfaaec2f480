import { execFile, execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { installDebianPackages } from './debian-tool.ts';
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

/** Files of a server, and the account that runs it. */
export interface Place {
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
export async function makePlace(onDisk: boolean): Promise<Place> {
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
export async function serve(
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
