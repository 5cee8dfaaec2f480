import { Readable, Writable, type Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ApiError } from '../monitor/errors.ts';
import { decodersFor } from './decompress.ts';
import { codeOf } from './errors.ts';

export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/** How much may wait between the socket and the decoders. */
const BUFFERED_BYTES = 1024 * 1024;

export interface BodyOptions {
  readonly headers: Headers;
  /** After decompression. */
  readonly mostBytes: number;
  /** Called with each piece, after decompression. */
  readonly onPiece: (piece: Buffer) => void;
  readonly onEnd: () => void;
  /** Called with `too_large`, or with `invalid_response` if it cannot be decompressed. */
  readonly onError: (error: ApiError) => void;
  /** Called when there is room again after `write` said that there is none. */
  readonly onDrain: () => void;
}

/** Takes the body of an answer as it comes from the connection. */
export interface BodyReader {
  /** False if there is no room for more. */
  write(chunk: Buffer): boolean;
  end(): void;
  /** Nothing more will come. */
  destroy(): void;
  /** Pieces are the chunks that were written; otherwise a decoder makes them, and may be making one. */
  readonly isPlain: boolean;
}

/**
 * Gives the body on, decompressed, and no further than `mostBytes`. One that is not compressed goes through no stream,
 * which would cost as much as the download.
 * @throws {ApiError} as `onError`, if the headers say already that it will not do
 */
export function createBodyReader(options: BodyOptions): BodyReader {
  const { headers, mostBytes, onPiece, onEnd, onError, onDrain } = options;
  let bytes = 0;
  const take = (piece: Buffer): ApiError | null => {
    bytes += piece.length;
    onPiece(piece);
    return bytes > mostBytes ? tooLarge(mostBytes) : null;
  };
  const decoders = decodersFor(headers['content-encoding']);
  if (decoders.length > 0) return decompress(decoders, { take, onEnd, onError, onDrain });
  if (Number(headers['content-length']) > mostBytes) throw tooLarge(mostBytes);
  return {
    write: (chunk) => {
      const error = take(chunk);
      if (error !== null) onError(error);
      return true;
    },
    end: onEnd,
    destroy: () => {},
    isPlain: true,
  };
}

interface Decompression extends Pick<BodyOptions, 'onEnd' | 'onError' | 'onDrain'> {
  readonly take: (piece: Buffer) => ApiError | null;
}

function decompress(
  decoders: readonly Duplex[],
  { take, onEnd, onError, onDrain }: Decompression,
): BodyReader {
  const source = new Readable({ highWaterMark: BUFFERED_BYTES, read: onDrain });
  const sink = new Writable({ write: (piece: Buffer, _, done) => done(take(piece)) });
  pipeline([source, ...decoders, sink]).then(onEnd, (error: unknown) => {
    if (error instanceof ApiError) return onError(error);
    onError(new ApiError('invalid_response', `the compressed body is broken: ${codeOf(error)}`));
  });
  return {
    write: (chunk) => source.push(chunk),
    end: () => source.push(null),
    destroy: () => source.destroy(),
    isPlain: false,
  };
}

function tooLarge(mostBytes: number): ApiError {
  return new ApiError('too_large', `the body is larger than ${mostBytes} bytes`);
}
