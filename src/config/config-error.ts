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

/** `unreadable`: the file cannot be read; `syntax`: not YAML, so nothing else was checked; `invalid`: every other error. */
export type ConfigErrorReason = 'unreadable' | 'syntax' | 'invalid';

/** An invalid configuration (docs/specification.md#configuration-file). The message has one line for each fault, by position. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly reason: ConfigErrorReason;
  readonly faults: readonly ConfigFault[];

  constructor(reason: ConfigErrorReason, faults: readonly ConfigFault[], cause?: unknown) {
    super(faults.map(formatFault).join('\n'), { cause });
    this.reason = reason;
    this.faults = faults;
  }
}

function formatFault({ file, line, column, message }: ConfigFault): string {
  return line === 0 ? `${file}: ${message}` : `${file}:${line}:${column}: ${message}`;
}
