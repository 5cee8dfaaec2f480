import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chownSync, existsSync, writeFileSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Certificate } from './certificates.ts';
import { freePort } from './free-port.ts';
import {
  makePlace,
  PASSWORD,
  type Place,
  type PostgresServer,
  serve,
  USER,
} from './postgres-server.ts';

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
