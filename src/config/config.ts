import type { LogLevel } from '../domain/log-level.ts';
import type { ListenAddress } from './values/address.ts';
import type { SecretSource } from '../domain/secret-source.ts';
import type { ServiceSettings } from '../monitor/ports/service.ts';

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

/** A valid configuration, deeply frozen. Paths are absolute, durations ms. */
export interface Config {
  /** The file it was read from. */
  readonly file: string;
  /** Absolute paths of that file and of every file that it names, without the store and without duplicates. */
  readonly files: readonly string[];
  readonly service: ServiceSettings;
  readonly jitterMs: number;
  readonly missingAfter: number;
  /** At least one, in the order of the file. */
  readonly projects: readonly ProjectConfig[];
  readonly store: SqliteStoreConfig | PostgresStoreConfig;
  readonly web: ListenAddress & {
    /** Host names in lower case. */
    readonly allowedHosts: readonly string[];
    readonly enableLifecycle: boolean;
    readonly configFile: string | undefined;
  };
  readonly log: { readonly level: LogLevel };
}
