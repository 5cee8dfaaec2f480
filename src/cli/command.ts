import type { Command } from 'commander';
import type { Env } from '../config/environment.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { Output } from './output.ts';

/** Passes signals from main.js, which receives them from its first line on, to the command. */
export interface Signals {
  /**
   * Set by commands that shut down in order: by the daemon once it has started. It is then called for the first SIGINT or
   * SIGTERM, and the second one ends the process. While it is unset, both end the process at once, of which a start of the
   * daemon loses no more than of a crash. SIGHUP is passed on for `run` only.
   */
  onSignal: ((signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP') => void) | undefined;
}

/** Inputs and outputs that each command can use. */
export interface Context {
  readonly stdout: Output;
  /** Writes one line to stderr; control characters in it are made visible. */
  readonly warn: (line: string) => void;
  /** On a terminal, shows progress in one line. Each call replaces the line, '' removes it. */
  readonly progress: (text: string) => void;
  readonly env: Env;
  readonly clock: Clock;
  readonly signals: Signals;
}

/**
 * Wraps what a command does into the function that commander calls with the arguments and options. `action` resolves to the
 * exit code, and may throw any error that main.ts describes.
 */
export type Run = <Given extends readonly unknown[]>(
  action: (context: Context, ...given: Given) => Promise<number>,
) => (...given: Given) => Promise<void>;

/** Adds its arguments, options and help to a command. */
export type Define = (command: Command, run: Run) => void;

/** Bad usage of the command line. The message is one line for the user. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
