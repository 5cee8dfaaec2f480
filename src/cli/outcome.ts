import { CommanderError } from 'commander';
import { ConfigError } from '../config/config-error.ts';
import { isBug } from '../monitor/errors.ts';
import { ReaderGoneError } from './output/output.ts';

/** Bad usage of the command line. The message is one line for the user. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Exit code of a failed command (docs/specification.md#exit-codes), and lines for stderr. */
export interface Outcome {
  readonly exitCode: 0 | 1 | 2;
  readonly lines: readonly string[];
}

export function toOutcome(error: unknown): Outcome {
  if (error instanceof ReaderGoneError) return { exitCode: 0, lines: [] };
  // Commander has written its text already. Its exit code is 0 for --help and --version.
  if (error instanceof CommanderError) return { exitCode: error.exitCode === 0 ? 0 : 2, lines: [] };
  if (error instanceof UsageError) return { exitCode: 2, lines: [`error: ${error.message}`] };
  if (error instanceof ConfigError) return { exitCode: 2, lines: error.message.split('\n') };
  if (error instanceof Error && !isBug(error)) {
    return { exitCode: 1, lines: [`error: ${error.message}`] };
  }
  return {
    exitCode: 1,
    lines: [`error: unexpected, please report it with the command that you ran: ${String(error)}`],
  };
}
