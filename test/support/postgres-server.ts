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

/** What the first call of {@link postgresPrograms} found. */
let found: { readonly programs: string | undefined } | undefined;

/**
 * Returns where `initdb` and `postgres` are. The first call installs them from Debian if they are missing and that can be;
 * otherwise it is undefined, and what needs them is skipped.
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
  /** Repeats a query in this database, on one connection, until the number of its rows is as wanted. */
  untilRows(database: string, text: string, isWanted: (rows: number) => boolean): Promise<void>;
  /** A connection that is left to the test. */
  connect(database: string): Promise<Client>;
  /** It says nothing any more, until the returned function is called. */
  freeze(): () => void;
  /** Ends every process of it at once by SIGKILL. */
  kill(): Promise<void>;
  start(): Promise<void>;
}

/** Where a server has its files, and who may run it. */
export interface Place {
  readonly directory: string;
  readonly data: string;
  readonly programs: string;
  readonly account: Account | undefined;
  /** One of the programs of PostgreSQL, to its end. */
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
      // Not at a standstill: whoever runs this may be what the servers' clients talk to.
      await promisify(execFile)(join(programs, program), [...args], { ...account, cwd: directory });
    },
    remove: async () => {
      await temporary[Symbol.asyncDispose]();
    },
  };
}

/** Runs the server whose files are here. */
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
    // Its processes would notice that it is gone only when they have nothing else to do. Stopped it begets no more.
    if (signal === 'SIGKILL') running.kill('SIGSTOP');
    const others = signal === 'SIGKILL' ? childrenOf(running.pid) : [];
    for (const pid of others) send(pid, signal);
    running.kill(signal);
    await exited;
    // Until the last is gone a new server finds their memory in use.
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

/** Whether there is such a process. */
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

/** Of a user of this computer. */
export function accountOf(name: string): Account {
  const id = (option: string) => Number(execFileSync('id', [option, name], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}
