import type { Writable } from 'node:stream';

/** The reader of stdout has closed it, as in `| head`. The command has nothing left to do. */
export class ReaderGoneError extends Error {
  override readonly name = 'ReaderGoneError';
}

/** Destination of the results of a command: stdout. Writing waits for a slow reader. */
export interface Output {
  /** Width of the terminal in columns; undefined if stdout is not a terminal. */
  readonly width: number | undefined;
  /** Height of the terminal in lines; undefined if stdout is not a terminal. */
  readonly height: number | undefined;
  /** Whether to colour what is written. */
  readonly color: boolean;
  /** Resolves when the stream has accepted the text. @throws {ReaderGoneError} or the error of the stream */
  write(text: string): Promise<void>;
  /** Writes texts in large chunks and waits for the reader after each chunk. @throws like `write` */
  writeAll(texts: Iterable<string>): Promise<void>;
  /** Writes lines, and a line break after each, as `writeAll` does. @throws like `write` */
  writeLines(lines: Iterable<string>): Promise<void>;
}

/** A stream such as process.stdout. A terminal has `columns` and `rows`. */
export type OutputStream = Writable & {
  readonly isTTY?: boolean;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
};

/** Chunk size in UTF-16 code units. */
const CHUNK_LENGTH = 64 * 1024;

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
  async function writeAll(texts: Iterable<string>): Promise<void> {
    let chunk = '';
    for (const text of texts) {
      chunk += text;
      if (chunk.length < CHUNK_LENGTH) continue;
      // Each chunk waits for the reader of the one before it.
      await write(chunk);
      chunk = '';
    }
    if (chunk !== '') await write(chunk);
  }
  return {
    // Read each time, because the size of a terminal can change.
    get width() {
      return stream.columns === 0 ? undefined : stream.columns;
    },
    get height() {
      return stream.rows === 0 ? undefined : stream.rows;
    },
    color,
    write,
    writeAll,
    writeLines: (lines) => writeAll(withBreaks(lines)),
  };
}

function* withBreaks(lines: Iterable<string>): Generator<string> {
  for (const line of lines) yield `${line}\n`;
}
