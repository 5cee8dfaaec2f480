import type { Expectations } from '../domain/limits.ts';
import type { LogLevel, SecretSource } from '../domain/options.ts';
import type { Receiver } from '../domain/receiver.ts';
import type { Pauses } from '../schedule/pause.ts';
import type { ListenAddress } from './addresses.ts';
import type { ServiceSettings } from '../monitor/ports/service.ts';

/** A file whose content is part of a configuration. */
export interface Source {
  /** Absolute. */
  readonly path: string;
  /** Identifies the content that was read. */
  readonly digest: string;
  /** The ids of the projects in a projects file. */
  readonly projects?: readonly string[];
}

interface SqliteStoreConfig {
  readonly path: string;
  readonly retentionMs: number;
}

interface PostgresStoreConfig {
  /** Source of the database's address. It is read when it is needed. */
  readonly postgresUrl: SecretSource;
  /** Length of a lease: time for which a worker keeps its projects after its last renewal. */
  readonly leaseMs: number;
  readonly retentionMs: number;
}

/** Address that heartbeats request, or its source (docs/specification.md#heartbeat). It is a secret in any case. */
export type HeartbeatUrl = { readonly file: string } | { readonly url: string };

export interface ProjectConfig {
  readonly id: string;
  /** A valid cron expression of 5 or 6 fields. */
  readonly schedule: string;
  /** The same while no prompt is PENDING or RUNNING; undefined if that makes no difference. */
  readonly idleSchedule: string | undefined;
  /** A valid IANA time zone. */
  readonly timezone: string;
  readonly key: SecretSource;
  readonly datasets: boolean;
  readonly pauses: Pauses;
  /** Empty without a team. */
  readonly team: string;
  readonly expect: Expectations;
}

/** A valid configuration. Paths are absolute, durations are in ms. */
export interface Config {
  /** Absolute path of the configuration file. */
  readonly file: string;
  /** The file itself, `ca_file` and the projects files: the files whose content was read into this configuration. */
  readonly sources: readonly Source[];
  /** What names the projects files: paths, or patterns of them. */
  readonly projectsFiles: readonly string[];
  readonly service: ServiceSettings;
  /** Template of the address of a prompt. Not in `service`, whose change replaces the client and drops all listings. */
  readonly promptUrl: string | undefined;
  readonly jitterMs: number;
  readonly missingAfter: number;
  /** At least one project, in the order of the file, those of projects files after its own. */
  readonly projects: readonly ProjectConfig[];
  readonly store: SqliteStoreConfig | PostgresStoreConfig;
  readonly web: ListenAddress & {
    /** Host names that browsers may use, in lower case; with that of `externalUrl`. */
    readonly allowedHosts: readonly string[];
    /** Address of the overview, without a final slash. */
    readonly externalUrl: string | undefined;
    readonly enableLifecycle: boolean;
    readonly configFile: string | undefined;
  };
  /** `experiments`: of how many unfinished experiments of each project /metrics counts the prompts. */
  readonly metrics: { readonly experiments: number };
  readonly log: { readonly level: LogLevel };
  /** Undefined if no heartbeat is requested. */
  readonly heartbeat: HeartbeatUrl | undefined;
  /** The receivers of messages, in the order of the file. */
  readonly notify: readonly Receiver[];
}

/** One error of a configuration, and its position. */
export interface ConfigFault {
  /** The configuration file, or the environment variable or option that the error is about. */
  readonly file: string;
  /** Counts from 1. 0, like `column`, for an error without a position. */
  readonly line: number;
  readonly column: number;
  /** A sentence for the user, without any value that could be a secret. */
  readonly message: string;
}

/** An invalid configuration (docs/specification.md#configuration-file). The message has one line for each fault, by position. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  /** `unreadable`: the file cannot be read; `invalid`: every other error. */
  readonly reason: 'unreadable' | 'invalid';
  readonly faults: readonly ConfigFault[];

  constructor(reason: ConfigError['reason'], faults: readonly ConfigFault[]) {
    super(faults.map(describeFault).join('\n'));
    this.reason = reason;
    this.faults = faults;
  }
}

/** Returns the line about an error, with its position. */
export function describeFault({ file, line, column, message }: ConfigFault): string {
  return line === 0 ? `${file}: ${message}` : `${file}:${line}:${column}: ${message}`;
}
