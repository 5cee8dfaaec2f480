import type { Command } from 'commander';
import type { Clock } from '../monitor/ports/clock.ts';
import type { Env } from '../config/environment.ts';
import type { Output } from './output/output.ts';

/** Passes signals from main.js, which receives them from its first line on, to the command. */
export interface Signals {
  /**
   * Set by commands that shut down in order, before they open anything. It is then called for the first SIGINT or
   * SIGTERM, and the second one ends the process. While it is unset, both end the process at once. SIGHUP is passed on
   * for `run` only.
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

/** Implementation of a command. Resolves to the exit code; may throw any error that outcome.ts describes. */
export type Action<Options> = (options: Options, context: Context) => Promise<number>;

/** Wraps the action of a command into the function that commander calls. */
export type WithContext = <Options>(action: Action<Options>) => (options: Options) => Promise<void>;

/** Adds one command with its options and help to the program. */
export type Register = (program: Command, withContext: WithContext) => void;
