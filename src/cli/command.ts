import type { Command } from 'commander';
import type { Clock } from '../monitor/ports/clock.ts';
import type { Env } from '../config/environment.ts';
import type { Output } from './output/output.ts';

/** Filled by main.js from its first line on. */
export interface Signals {
  /**
   * Set by a command that stops in an orderly way, before it opens anything; SIGINT and SIGTERM then come here once,
   * a second one ends the process. While it is unset they end the process at once. SIGHUP comes here for `run` only.
   */
  onSignal: ((signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP') => void) | undefined;
}

/** What every command is given. */
export interface Context {
  readonly stdout: Output;
  /** Writes one line to stderr; control characters in it are made visible. */
  readonly warn: (line: string) => void;
  /** On a terminal, shows what is going on in a line that the next call overwrites, and '' takes away. */
  readonly progress: (text: string) => void;
  readonly env: Env;
  readonly clock: Clock;
  readonly signals: Signals;
}

/** The body of a command; resolves to the exit code. It may throw whatever faults.ts can tell. */
export type Action<Options> = (options: Options, context: Context) => Promise<number>;

/** Makes a body what commander calls. */
export type WithContext = <Options>(action: Action<Options>) => (options: Options) => Promise<void>;

/** Adds one command with its options and help to the program. */
export type Register = (program: Command, withContext: WithContext) => void;
