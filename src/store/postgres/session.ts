import type { Socket } from 'node:net';
import { type ClientBase, type ClientConfig, types } from 'pg';
import { StoreError } from '../../monitor/errors.ts';
import type { ConnectionSettings, Server } from './url.ts';

/** Oldest major version that is tested (docs/scaling.md#run-it). */
const MIN_MAJOR = 15;
export const CONNECT_MS = 3000;
/** Limits that the server enforces, even if this process has ended. */
const STATEMENT_MS = 60_000;
const IDLE_IN_TRANSACTION_MS = 10_000;
/** Delay of TCP keepalives. Firewalls drop a silent connection only after a longer time. */
const KEEP_ALIVE_MS = 10_000;

/** Returns how to connect to this server. */
export function sessionConfig(
  { user, password, database }: ConnectionSettings,
  { host, port, tls }: Server,
  stream: () => Socket,
): ClientConfig {
  return {
    host,
    port,
    ssl: tls,
    stream,
    user,
    password,
    database,
    application_name: 'evalwatch',
    connectionTimeoutMillis: CONNECT_MS,
    statement_timeout: STATEMENT_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    types: {
      // Counts, keys and times, which a number holds.
      getTypeParser: (oid, format) =>
        oid === types.builtins.INT8 ? Number : types.getTypeParser(oid, format),
    },
  };
}

interface Session {
  readonly version: number;
  readonly read_only: string;
  readonly encoding: string;
}

/**
 * Sets the isolation, because a database can have another default: under one that keeps a snapshot, a statement that has
 * waited for another fails instead of seeing its changes.
 */
const PREPARE = `SELECT current_setting('server_version_num')::integer AS version,
    current_setting('transaction_read_only') AS read_only, current_setting('server_encoding') AS encoding,
    set_config('default_transaction_isolation', 'read committed', false)`;

const NO_SESSION: Session = { version: 0, read_only: '', encoding: '' };

/** @throws {StoreError} if this server is too old, takes no writes, or cannot hold every text */
export async function prepareSession(client: ClientBase): Promise<void> {
  const [session] = (await client.query<Session>(PREPARE)).rows;
  const { version, read_only: readOnly, encoding } = session ?? NO_SESSION;
  const major = Math.floor(version / 10_000);
  if (major < MIN_MAJOR) {
    throw new StoreError(
      'other',
      `the database of store.postgres_url_file or _env is of PostgreSQL ${major}, and evalwatch needs ${MIN_MAJOR} or newer`,
    );
  }
  if (encoding !== 'UTF8') {
    throw new StoreError(
      'other',
      `the database of store.postgres_url_file or _env has the encoding ${encoding}, and evalwatch needs UTF8: make one by CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`,
    );
  }
  if (readOnly !== 'off') {
    throw new StoreError(
      'io',
      'no server of store.postgres_url_file or _env takes writes: all are standbys',
    );
  }
}
