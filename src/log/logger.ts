import { writeSync } from 'node:fs';
import { pino } from 'pino';
import type { LogLevel } from '../domain/options.ts';
import { visibleJson } from '../domain/visible.ts';
import { isBug } from '../monitor/errors.ts';

/** `event` and the fields that apply (docs/specification.md#log-lines); undefined ones are left out, `err` is described. */
export interface LogFields {
  readonly event: string;
  readonly [field: string]: unknown;
}

type Write = (fields: LogFields, msg: string) => void;

/** Writes log lines; `msg` is a static text. */
export interface Logger extends Readonly<Record<LogLevel, Write>> {
  setLevel(level: LogLevel): void;
  /** Number of lines written, by level. */
  readonly written: Readonly<Record<LogLevel, number>>;
}

export interface LoggerOptions {
  readonly level: LogLevel;
  readonly destination: Destination;
  /**
   * Called once, when a line cannot be written; nothing is written after it. It must end the process before it returns,
   * because later steps could not be logged (docs/specification.md#log-lines).
   */
  readonly onFatalError: (error: Error) => void;
}

/** Writes a line with its line feed, whole, before it returns; throws if it cannot. */
export interface Destination {
  write(line: string): void;
}

/** JSON lines by pino: `level` as a word, `time` ISO 8601 UTC (docs/specification.md#log-lines). */
export function createLogger({ level, destination, onFatalError }: LoggerOptions): Logger {
  const written: Record<LogLevel, number> = { debug: 0, info: 0, warn: 0, error: 0 };
  let isDead = false;
  const lines = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (word) => ({ level: word }) },
      serializers: {
        err: (error: unknown) => (error instanceof Error ? describeError(error) : error),
      },
    },
    { write: (line: string) => destination.write(visibleJson(line)) },
  );

  function writerOf(word: LogLevel): Write {
    return (fields, msg) => {
      if (isDead || !lines.isLevelEnabled(word)) return;
      try {
        lines[word](fields, msg);
      } catch (error) {
        isDead = true;
        onFatalError(error instanceof Error ? error : new Error(String(error)));
        return;
      }
      written[word] += 1;
    };
  }

  return {
    debug: writerOf('debug'),
    info: writerOf('info'),
    warn: writerOf('warn'),
    error: writerOf('error'),
    setLevel(next) {
      lines.level = next;
    },
    written,
  };
}

const MAX_ERROR_TEXT_LENGTH = 2048;
const MAX_CAUSES = 4;

/** Returns type, message, code and causes of an error, and the stack of a bug. */
export function describeError(error: unknown, depth = 0): Readonly<Record<string, unknown>> {
  const text = (value: unknown) =>
    typeof value === 'string' || typeof value === 'number'
      ? String(value).slice(0, MAX_ERROR_TEXT_LENGTH).toWellFormed()
      : undefined;
  if (!(error instanceof Error)) return { type: typeof error, message: text(error) };
  return {
    type: text(error.name),
    message: text(error.message),
    code: 'code' in error ? text(error.code) : undefined,
    cause:
      error.cause === undefined || depth === MAX_CAUSES
        ? undefined
        : describeError(error.cause, depth + 1),
    // Only a bug needs a stack.
    stack: depth === 0 && isBug(error) ? text(error.stack) : undefined,
  };
}

const RETRY_AFTER_MS = 5;
const never = new Int32Array(new SharedArrayBuffer(4));

/**
 * Writes to a file descriptor. While a pipe is full, it blocks the whole process, so that no line is lost. pino's own
 * destination gives up after five minutes, with a stack overflow.
 */
export function fileDescriptor(fd: number): Destination {
  return {
    write(line) {
      let rest: Uint8Array = Buffer.from(line);
      while (rest.length > 0) {
        try {
          rest = rest.subarray(writeSync(fd, rest));
        } catch (error) {
          // Another process has made the pipe non-blocking, and its reader is slow.
          const isFull = error instanceof Error && 'code' in error && error.code === 'EAGAIN';
          if (!isFull) throw error;
          Atomics.wait(never, 0, 0, RETRY_AFTER_MS);
        }
      }
    },
  };
}
