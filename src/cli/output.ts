import type { Writable } from 'node:stream';

/** The reader of stdout has closed it, as in `| head`. The command has nothing left to do. */
export class ReaderGoneError extends Error {
  override readonly name = 'ReaderGoneError';
}

/** Destination of the results of a command: stdout. */
export interface Output {
  /** Width of the terminal in columns; undefined if stdout is not a terminal. */
  readonly width: number | undefined;
  /** Whether to colour what is written. */
  readonly color: boolean;
  /** Resolves when the reader has accepted the text. @throws {ReaderGoneError} or the error of the stream */
  write(text: string): Promise<void>;
}

/** A stream such as process.stdout. A terminal has `columns`. */
export type OutputStream = Writable & {
  readonly isTTY?: boolean;
  readonly columns?: number | undefined;
};

export function createOutput(stream: OutputStream, color: boolean): Output {
  // Errors are reported by the callback of each write; without a listener they would also crash the process.
  stream.on('error', () => {});
  return {
    // Read each time, because the size of a terminal can change.
    get width() {
      return stream.columns === 0 ? undefined : stream.columns;
    },
    color,
    write: (text) =>
      new Promise((resolve, reject) => {
        stream.write(text, (error?: NodeJS.ErrnoException | null) => {
          if (error === undefined || error === null) resolve();
          else reject(error.code === 'EPIPE' ? new ReaderGoneError() : error);
        });
      }),
  };
}

/** Shortens a time of a row to whole seconds. */
export function formatTime(iso: string): string {
  return `${iso.slice(0, 19)}Z`;
}

/** Does the same for a time that a row may not have. */
export function timeText(iso: string | null): string | undefined {
  return iso === null ? undefined : formatTime(iso);
}

/** Returns a word as a POSIX shell reads it. */
export function quoteWord(word: string): string {
  return /^[\w./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
