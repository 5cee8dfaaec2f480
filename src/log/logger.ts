import { pino } from 'pino';
import { visibleJson } from '../domain/visible.ts';
import { LOG_LEVELS, type LogLevel } from '../domain/log-level.ts';
import type { Destination } from './destination.ts';
import { printableFields } from './printable.ts';

/** `event` and the fields that apply (docs/specification.md#log-lines); undefined ones are left out, errors are described. */
interface LogFields {
  readonly event: string;
  readonly [field: string]: unknown;
}

type Write = (fields: LogFields, msg: string) => void;

/** Writes log lines; `msg` is a static text. */
export interface Logger extends Readonly<Record<LogLevel, Write>> {
  setLevel(level: LogLevel): void;
  /** Calls `listener` for each line written, those before this call included. A second listener replaces the first. */
  onLine(listener: (level: LogLevel) => void): void;
}

export interface LoggerOptions {
  readonly level: LogLevel;
  /** Receives each line whole, in order, before the call returns. */
  readonly destination: Destination;
  /**
   * Called once, when a line cannot be written; nothing is written after it. It must end the process before it returns,
   * because later steps could not be logged (docs/specification.md#log-lines).
   */
  readonly onFatalError: (error: Error) => void;
}

/** JSON lines by pino: `level` as a word, `time` ISO 8601 UTC (docs/specification.md#log-lines). */
export function createLogger(options: LoggerOptions): Logger {
  const { destination, onFatalError } = options;
  const written: Record<LogLevel, number> = { debug: 0, info: 0, warn: 0, error: 0 };
  let listener: ((level: LogLevel) => void) | undefined;
  let isDead = false;
  const lines = pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (level) => ({ level }) },
      // Errors are described before pino sees them.
      serializers: { err: (error: unknown) => error },
    },
    { write: (line: string) => destination.write(visibleJson(line)) },
  );

  function writerOf(level: LogLevel): Write {
    return (fields, msg) => {
      if (isDead || !lines.isLevelEnabled(level)) return;
      const presentable = printableFields(fields);
      try {
        lines[level](presentable, msg);
      } catch (error) {
        isDead = true;
        onFatalError(error instanceof Error ? error : new Error(String(error)));
        return;
      }
      written[level] += 1;
      listener?.(level);
    };
  }

  return {
    debug: writerOf('debug'),
    info: writerOf('info'),
    warn: writerOf('warn'),
    error: writerOf('error'),
    setLevel(level) {
      lines.level = level;
    },
    onLine(next) {
      for (const level of LOG_LEVELS) {
        for (let line = 0; line < written[level]; line += 1) next(level);
      }
      listener = next;
    },
  };
}
