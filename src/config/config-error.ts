/** One mistake in a configuration, and where it stands. */
export interface ConfigFault {
  /** The configuration file, or the name of the environment variable that overrides it. */
  readonly file: string;
  /** From 1. 0, like `column`, for a fault without a place: in an environment variable, or the count of further mistakes. */
  readonly line: number;
  readonly column: number;
  /** Plain words, without any value that could be a key. */
  readonly message: string;
}

/** `unreadable`: no text to look at; `syntax`: not YAML, nothing else was checked; `invalid`: everything that is wrong. */
export type ConfigErrorReason = 'unreadable' | 'syntax' | 'invalid';

/** An invalid configuration (docs/specification.md#configuration-file). The message has one line a fault, by position. */
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
