import { Readable, Writable, type Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ApiError } from '../../monitor/errors.ts';
import { createPieceJoiner } from './body-pieces.ts';
import { decodersFor } from './decompress.ts';
import { codeOf } from '../errors.ts';

export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/** Maximum that is buffered between the socket and the decoders. */
const BUFFERED_BYTES = 1024 * 1024;

export interface BodyOptions {
  readonly headers: Headers;
  /** Maximum size after decompression. */
  readonly maxBytes: number;
  /** Called with each decompressed piece; small ones are joined. It may throw an `ApiError`, which ends the body. */
  readonly onPiece: (piece: Buffer) => void;
  readonly onEnd: () => void;
  /**
   * Called with `too_large`, with `invalid_response` if the body cannot be decompressed, or with the error that `onPiece`
   * threw. Only the first call counts.
   */
  readonly onError: (error: Error) => void;
  /** Called when there is room again after `write` returned false. */
  readonly onDrain: () => void;
}

/** Reads the body of an answer as it comes from the connection. */
export interface BodyReader {
  /** Returns false if there is no room for more. */
  write(chunk: Buffer): boolean;
  end(): void;
  /** Stops reading before the end of the body. */
  destroy(): void;
  /** Returns the number of bytes read so far, after decompression. */
  bytes(): number;
}

/**
 * Creates a reader that decompresses a body and passes at most `maxBytes` of it on. An uncompressed body bypasses
 * streams, which cost as much as the download.
 * @throws {ApiError} like `onError`, if the headers alone show that the body is unusable
 */
export function createBodyReader(options: BodyOptions): BodyReader {
  const { headers, maxBytes, onPiece, onEnd, onError, onDrain } = options;
  const joiner = createPieceJoiner(onPiece);
  let bytes = 0;
  const take = (piece: Buffer) => {
    bytes += piece.length;
    if (bytes > maxBytes) throw tooLarge(maxBytes);
    joiner.push(piece);
  };
  const end = () => {
    joiner.flush();
    onEnd();
  };
  const counter = { bytes: () => bytes };
  const decoders = decodersFor(headers['content-encoding']);
  if (decoders.length > 0)
    return { ...decompress(decoders, { take, end, onError, onDrain }), ...counter };
  if (Number(headers['content-length']) > maxBytes) throw tooLarge(maxBytes);
  return {
    write: (chunk) => {
      runSafely(() => take(chunk), onError);
      return true;
    },
    end: () => runSafely(end, onError),
    destroy: () => {},
    ...counter,
  };
}

interface Decompression extends Pick<BodyOptions, 'onError' | 'onDrain'> {
  readonly take: (piece: Buffer) => void;
  readonly end: () => void;
}

function decompress(
  decoders: readonly Duplex[],
  { take, end, onError, onDrain }: Decompression,
): Omit<BodyReader, 'bytes'> {
  const source = new Readable({ highWaterMark: BUFFERED_BYTES, read: onDrain });
  const sink = new Writable({
    write: (piece: Buffer, _, done) => {
      const isTaken = runSafely(
        () => take(piece),
        (error) => {
          onError(error);
          done(error);
        },
      );
      if (isTaken) done();
    },
  });
  pipeline([source, ...decoders, sink]).then(
    () => runSafely(end, onError),
    (error: unknown) => {
      const message = `the body cannot be decompressed: ${codeOf(error)}`;
      onError(new ApiError('invalid_response', message));
    },
  );
  let hasRoom = true;
  // A decoder takes as long for a byte as for a block, so small chunks are joined first.
  const joiner = createPieceJoiner((piece) => {
    hasRoom = source.push(piece);
  });
  /** Flushes the joiner after each turn of the event loop, so that a broken body is detected before its end. */
  let flushing: NodeJS.Immediate | undefined;
  const flush = () => {
    clearImmediate(flushing);
    flushing = undefined;
    joiner.flush();
  };
  return {
    write: (chunk) => {
      hasRoom = true;
      joiner.push(chunk);
      flushing ??= setImmediate(flush);
      return hasRoom;
    },
    end: () => {
      flush();
      source.push(null);
    },
    destroy: () => {
      clearImmediate(flushing);
      source.destroy();
    },
  };
}

/** Runs `work`, passes an error to `onError`, and returns whether there was none. */
function runSafely(work: () => void, onError: (error: Error) => void): boolean {
  try {
    work();
    return true;
  } catch (error) {
    onError(
      error instanceof Error
        ? error
        : new Error('a value that is not an Error was thrown', { cause: error }),
    );
    return false;
  }
}

function tooLarge(maxBytes: number): ApiError {
  return new ApiError('too_large', `the body is larger than ${maxBytes} bytes`);
}
