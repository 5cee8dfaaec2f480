import type { Writable } from 'node:stream';

/** The reader of stdout has gone, as in `| head`; the command has nothing left to do. */
export class ReaderGoneError extends Error {
  override readonly name = 'ReaderGoneError';
}

/** The results of a command: stdout, as slow as its reader. */
export interface Output {
  /** Width of the terminal in columns; undefined if stdout is no terminal. */
  readonly width: number | undefined;
  /** Height of the terminal in lines, likewise. */
  readonly height: number | undefined;
  /** Whether to colour what is written. */
  readonly color: boolean;
  /** Resolves when the text has been taken. @throws {ReaderGoneError} or the stream's own error */
  write(text: string): Promise<void>;
  /** Writes lines in large pieces, waiting for the reader after each. @throws as `write` */
  writeLines(lines: Iterable<string>): Promise<void>;
}

/** A stream such as process.stdout; with `columns` and `rows` if it is a terminal. */
export type OutputStream = Writable & {
  readonly isTTY?: boolean;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
};

/** Piece size in UTF-16 units. */
const PIECE = 64 * 1024;

export function createOutput(stream: OutputStream, color: boolean): Output {
  // Errors are reported by the callback of each write; without a listener they would also crash the process.
  stream.on('error', () => {});
  const write = (text: string) =>
    new Promise<void>((resolve, reject) => {
      stream.write(text, (error?: NodeJS.ErrnoException | null) => {
        if (error === undefined || error === null) resolve();
        else reject(error.code === 'EPIPE' ? new ReaderGoneError() : error);
      });
    });
  return {
    // Asked each time: a terminal's size changes.
    get width() {
      return stream.columns === 0 ? undefined : stream.columns;
    },
    get height() {
      return stream.rows === 0 ? undefined : stream.rows;
    },
    color,
    write,
    async writeLines(lines) {
      let piece = '';
      for (const line of lines) {
        piece += `${line}\n`;
        if (piece.length < PIECE) continue;
        // Each piece waits for the reader of the one before it.
        await write(piece);
        piece = '';
      }
      if (piece !== '') await write(piece);
    },
  };
}
