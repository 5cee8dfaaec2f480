import type { Protection } from '../../domain/protection.ts';

/** Content of a valid web configuration file (docs/web-configuration.md). */
export interface WebConfig extends Protection {
  /** Absolute paths: the file itself, and all files that it names. */
  readonly files: readonly string[];
}
