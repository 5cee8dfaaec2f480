import type { LogLevel } from '../domain/log-level.ts';

/** Source of a secret: an API key (docs/specification.md#api-keys) or the address of the database. */
export type SecretSource =
  | { readonly file: string }
  /** `value` is what the variable held when the configuration was loaded, undefined if it was unset or empty. */
  | { readonly env: string; readonly value: string | undefined };

interface SqliteStoreConfig {
  readonly path: string;
  readonly retentionMs: number;
}

interface PostgresStoreConfig {
  /** Of its address, which postgres-url.ts reads when it is needed. */
  readonly postgresUrl: SecretSource;
  /** How long a worker that is not heard of keeps its projects. */
  readonly leaseMs: number;
  readonly retentionMs: number;
}

export interface ProjectConfig {
  readonly id: string;
  /** A cron expression of 5 or 6 fields, valid. */
  readonly schedule: string;
  /** An IANA zone, valid. */
  readonly timezone: string;
  readonly key: SecretSource;
  readonly datasets: boolean;
}

interface ServiceConfig {
  /** Without a trailing slash, without a login, query or fragment. */
  readonly baseUrl: string;
  readonly timeoutMs: number;
  readonly retries: number;
  readonly maxConcurrency: number;
  /** 0 is no limit; may be fractional. */
  readonly maxRequestsPerSecond: number;
  readonly maxResponseBytes: number;
  /** Largest number of items in one listing. */
  readonly maxItems: number;
  /** PEM certificates that are trusted instead of the usual authorities: what `ca_file` held when it was read. */
  readonly authorities: string | undefined;
  /** May hold a login. */
  readonly proxyUrl: string | undefined;
}

/** A valid configuration, deeply frozen. Paths are absolute, durations ms. */
export interface Config {
  /** The file it was read from. */
  readonly file: string;
  /** Absolute paths of that file and of every file that it names, without the store and without duplicates. */
  readonly files: readonly string[];
  readonly service: ServiceConfig;
  readonly jitterMs: number;
  readonly missingAfter: number;
  /** At least one, in the order of the file. */
  readonly projects: readonly ProjectConfig[];
  readonly store: SqliteStoreConfig | PostgresStoreConfig;
  readonly web: {
    /** Without brackets if it is an IPv6 address. */
    readonly host: string;
    /** 0 is any free one. */
    readonly port: number;
    /** Host names in lower case. */
    readonly allowedHosts: readonly string[];
    readonly enableLifecycle: boolean;
    readonly configFile: string | undefined;
  };
  readonly log: { readonly level: LogLevel };
}
