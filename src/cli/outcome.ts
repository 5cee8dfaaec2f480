import { CommanderError } from 'commander';
import { ConfigError } from '../config/config-error.ts';
import { ReaderGoneError } from './output/output.ts';

/** The command line asks for what cannot be; its message is one line for the user. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** The exit code of a failed command (docs/specification.md#exit-codes) and the lines for stderr. */
export interface Outcome {
  readonly exitCode: 0 | 1 | 2;
  readonly lines: readonly string[];
}

export function toOutcome(error: unknown): Outcome {
  if (error instanceof ReaderGoneError) return { exitCode: 0, lines: [] };
  // Commander has written its text already; its code is 0 for help and version that were asked for.
  if (error instanceof CommanderError) return { exitCode: error.exitCode === 0 ? 0 : 2, lines: [] };
  if (error instanceof UsageError) return { exitCode: 2, lines: [`error: ${error.message}`] };
  if (error instanceof ConfigError) return { exitCode: 2, lines: error.message.split('\n') };
  if (isExpected(error)) return { exitCode: 1, lines: [`error: ${error.message}`] };
  return {
    exitCode: 1,
    lines: [`error: unexpected, please report it with the command that you ran: ${String(error)}`],
  };
}

/** Errors of the store and the service have a `reason`, those of the system a `code`: nobody's bug. */
function isExpected(error: unknown): error is Error {
  return error instanceof Error && ('reason' in error || 'code' in error);
}
