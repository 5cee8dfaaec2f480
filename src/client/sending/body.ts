import { Duplex, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { ApiError } from '../../monitor/errors.ts';
import { createByteBuffer } from './byte-buffer.ts';
import { codeOf } from '../errors.ts';
import type { Scrub } from '../../domain/scrub.ts';
import { cleanText } from '../text.ts';

export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/** Maximum that is buffered between the socket and the decoder. */
const BUFFERED_BYTES = 1024 * 1024;
/** Chunks are passed to the decoder when they have so many bytes together. */
const JOINED_BYTES = 64 * 1024;
/** The decoder passes its work to another thread for each so many decompressed bytes; by default for 16 KiB. */
const DECODED_BYTES = 64 * 1024;
/** Longest `Content-Encoding` that an error quotes, in code points. */
const MAX_CODING_LENGTH = 100;

export interface BodyOptions {
  readonly headers: Headers;
  /** Maximum size, both before and after decompression: a compressed body can be long and turn into nothing. */
  readonly maxBytes: number;
  readonly scrub: Scrub;
  /**
   * Called with each decompressed piece, which must be copied to be kept. May return a promise, which never rejects; no
   * more should then be written until it resolves. It may throw an `ApiError`, which ends the body.
   */
  readonly onPiece: (piece: Buffer) => Promise<void> | undefined;
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
  const { headers, maxBytes, scrub, onPiece, onEnd, onError, onDrain } = options;
  let bytes = 0;
  const take = (piece: Buffer) => {
    bytes += piece.length;
    if (bytes > maxBytes) throw tooLarge(maxBytes);
    return onPiece(piece);
  };
  const counter = { bytes: () => bytes };
  if (Number(headers['content-length']) > maxBytes) throw tooLarge(maxBytes);
  if (isGzip(headers['content-encoding'], scrub)) {
    return { ...decompress({ maxBytes, take, onEnd, onError, onDrain }), ...counter };
  }
  return {
    write: (chunk) => {
      try {
        const room = take(chunk);
        void room?.then(onDrain);
        return room === undefined;
      } catch (error) {
        onError(toError(error));
        return true;
      }
    },
    end: onEnd,
    destroy: () => {},
    ...counter,
  };
}

/**
 * Returns whether a `Content-Encoding` is gzip, the only coding that was asked for, and not plain.
 * @throws {ApiError} `invalid_response`, for any other coding
 */
function isGzip(header: string | readonly string[] | undefined, scrub: Scrub): boolean {
  const coding = [header ?? []].flat().join(', ').trim();
  if (/^(?:identity)?$/i.test(coding)) return false;
  if (/^(?:x-)?gzip$/i.test(coding)) return true;
  const shown = JSON.stringify(cleanText(coding, MAX_CODING_LENGTH, scrub));
  throw new ApiError(
    'invalid_response',
    `the body has the Content-Encoding ${shown}, and only gzip was asked for`,
  );
}

interface Decompression extends Pick<BodyOptions, 'maxBytes' | 'onEnd' | 'onError' | 'onDrain'> {
  readonly take: (piece: Buffer) => Promise<void> | undefined;
}

function decompress({
  maxBytes,
  take,
  onEnd,
  onError,
  onDrain,
}: Decompression): Omit<BodyReader, 'bytes'> {
  const source = new Readable({ highWaterMark: BUFFERED_BYTES, read: onDrain });
  const takeAll = async (pieces: AsyncIterable<Buffer>) => {
    for await (const piece of pieces) {
      try {
        await take(piece);
      } catch (error) {
        onError(toError(error));
        throw error;
      }
    }
  };
  const decoder = createGunzip({ chunkSize: DECODED_BYTES });
  pipeline([source, decoder, Duplex.from(takeAll)]).then(onEnd, (error: unknown) => {
    const message = `the body cannot be decompressed: ${codeOf(error)}`;
    onError(new ApiError('invalid_response', message));
  });
  let hasRoom = true;
  /** Compressed bytes so far. */
  let received = 0;
  // A decoder takes as long for a byte as for a block, so small chunks are joined first.
  const joined = createByteBuffer();
  /** Flushes the chunks after each turn of the event loop, so that a broken body is detected before its end. */
  let flushing: NodeJS.Immediate | undefined;
  const flush = () => {
    clearImmediate(flushing);
    flushing = undefined;
    if (joined.length() > 0) hasRoom = source.push(joined.take());
  };
  return {
    write: (chunk) => {
      received += chunk.length;
      if (received > maxBytes) {
        onError(tooLarge(maxBytes));
        return true;
      }
      hasRoom = true;
      joined.append(chunk);
      if (joined.length() >= JOINED_BYTES) flush();
      else flushing ??= setImmediate(flush);
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

function toError(error: unknown): Error {
  return error instanceof Error
    ? error
    : new Error('a value that is not an Error was thrown', { cause: error });
}

function tooLarge(maxBytes: number): ApiError {
  return new ApiError('too_large', `the body is larger than ${maxBytes} bytes`);
}
