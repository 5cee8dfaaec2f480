import { isIP } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import { readFile } from '../../files/read-file.ts';
import { StoreError } from '../../monitor/errors.ts';

/** One server of the connection string. */
export interface Server {
  /** Name, address, or directory of a socket. */
  readonly host: string;
  readonly port: number;
  readonly tls: ConnectionOptions | false;
}

export interface ConnectionSettings {
  /** In the order in which they are tried. */
  readonly servers: readonly [Server, ...Server[]];
  readonly user: string;
  readonly password: string;
  readonly database: string;
  /** False behind a pooler that supports no prepared statements. */
  readonly prepared: boolean;
  /** Texts of the connection string that no output may show if they are not short. */
  readonly secrets: readonly string[];
}

const PARAMETERS = [
  'host',
  'port',
  'sslmode',
  'sslrootcert',
  'target_session_attrs',
  'prepared',
] as const;
/** Accepted values of target_session_attrs: evalwatch always connects to the server that takes writes. */
const WRITABLE = ['read-write', 'primary', 'any'];
const MAX_AUTHORITIES_BYTES = 16 * 1024 * 1024;
const URL_SHAPE =
  /^postgres(?:ql)?:\/\/(?:(?<user>[^:@/?#]*)(?::(?<password>[^@/?#]*))?@)?(?<servers>[^@/?#]*)(?:\/(?<database>[^/?#]*))?(?:\?(?<query>[^#]*))?$/;

/**
 * Parses a connection string as libpq does, with several servers: `postgres://user:password@one,two:5433/database`. Reads
 * the file that its sslrootcert names.
 * @throws {StoreError} that shows no part of the connection string
 */
export async function readUrl(url: string): Promise<ConnectionSettings> {
  const parts = URL_SHAPE.exec(url.trim())?.groups;
  if (parts === undefined) {
    throw unusable(
      'is not of the form postgres://user:password@host:port/database; percent-encode @ : / ? # % in names and passwords',
    );
  }
  const query = parseQuery(parts['query'] ?? '');
  const user = decode(parts['user'] ?? '');
  if (user === '') throw unusable('names no user');
  const password = decode(parts['password'] ?? '');
  const database = decode(parts['database'] ?? '') || user;
  const addresses = parseServers(
    query.get('host') ?? decode(parts['servers'] ?? ''),
    query.get('port') ?? '5432',
  );
  const mode = query.get('sslmode');
  if (!WRITABLE.includes(query.get('target_session_attrs') ?? 'any')) {
    throw unusable(`has a target_session_attrs that is not one of ${WRITABLE.join(', ')}`);
  }
  const authorities = await readAuthorities(query.get('sslrootcert'));
  const [first, ...others] = addresses.map(({ host, port }): Server => {
    return { host, port, tls: tlsOptions(host, mode, authorities) };
  });
  if (first === undefined) throw unusable('names no server');
  return {
    servers: [first, ...others],
    user,
    password,
    database,
    prepared: query.get('prepared') !== 'false',
    secrets: [
      url.trim(),
      password,
      parts['password'] ?? '',
      user,
      database,
      ...addresses.map(({ host }) => host),
    ],
  };
}

function parseQuery(text: string): ReadonlyMap<string, string> {
  const query = new Map(
    text
      .split('&')
      .filter((pair) => pair !== '')
      .map((pair) => {
        const [name = '', value = ''] = pair.split('=', 2);
        return [decode(name), decode(value)] as const;
      }),
  );
  for (const name of query.keys()) {
    if (!PARAMETERS.some((known) => known === name)) {
      throw unusable(`has a parameter that is not one of ${PARAMETERS.join(', ')}`);
    }
  }
  return query;
}

function parseServers(
  text: string,
  defaultPort: string,
): readonly { readonly host: string; readonly port: number }[] {
  return text.split(',').map((server) => {
    const parts = /^(?:\[(?<v6>[^\]]+)\]|(?<host>[^:]*))(?::(?<port>\d+))?$/.exec(server)?.groups;
    const port = Number(parts?.['port'] ?? defaultPort);
    if (parts === undefined || !Number.isInteger(port) || port < 1 || port > 65_535) {
      throw unusable('has a server that is not of the form host or host:port');
    }
    return { host: (parts['v6'] ?? parts['host']) || 'localhost', port };
  });
}

/** Returns TLS options. A connection is unencrypted only within this computer, or with `sslmode=disable`. */
function tlsOptions(
  host: string,
  mode: string | undefined,
  ca: string | undefined,
): ConnectionOptions | false {
  if (host.startsWith('/')) return false;
  const options: ConnectionOptions = {
    // Otherwise NODE_TLS_REJECT_UNAUTHORIZED=0 would have the password sent to anybody.
    rejectUnauthorized: true,
    ...(ca !== undefined && { ca, allowPartialTrustChain: true }),
    ...(isIP(host) > 0 ? { host } : { servername: host }),
  };
  switch (mode ?? (isLoopback(host) ? 'disable' : 'verify-full')) {
    case 'disable':
      return false;
    case 'require':
      return { ...options, rejectUnauthorized: false };
    case 'verify-ca':
      return { ...options, checkServerIdentity: () => undefined };
    case 'verify-full':
      return options;
    default:
      throw unusable('has an sslmode that is not one of disable, require, verify-ca, verify-full');
  }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.');
}

async function readAuthorities(path: string | undefined): Promise<string | undefined> {
  if (path === undefined || path === 'system') return undefined;
  const { bytes } = readFile(path, MAX_AUTHORITIES_BYTES);
  if (bytes === undefined) throw unusable('names an sslrootcert that cannot be read');
  return bytes.toString('utf8');
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw unusable('has a % that is no percent-encoding: write it as %25');
  }
}

function unusable(what: string): StoreError {
  return new StoreError(
    'other',
    `the connection string of store.postgres_url_file or _env ${what}`,
  );
}
