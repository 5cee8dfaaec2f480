import { Writable, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ApiError } from '../monitor/errors.ts';
import { decodersFor } from './decompress.ts';
import { codeOf } from './errors.ts';

export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

export interface BodyOptions {
  /** As it comes from the connection; destroyed if it is not read to its end. */
  readonly source: Readable;
  readonly headers: Headers;
  /** After decompression. */
  readonly mostBytes: number;
  /** Called with the bytes of each piece, after decompression. */
  readonly count: (bytes: number) => void;
  readonly signal: AbortSignal;
}

/**
 * The whole body of an answer, decompressed, and not read further than `mostBytes`.
 * @throws {ApiError} `too_large`, or `invalid_response` if it cannot be decompressed
 */
export async function readBody(options: BodyOptions): Promise<Buffer> {
  const { source, headers, mostBytes, count, signal } = options;
  const decoders = decodersFor(headers['content-encoding']);
  if (decoders.length === 0 && Number(headers['content-length']) > mostBytes) {
    throw tooLarge(mostBytes);
  }
  const chunks: Buffer[] = [];
  let bytes = 0;
  const sink = new Writable({
    write: (chunk: Buffer, _, done) => {
      chunks.push(chunk);
      bytes += chunk.length;
      count(chunk.length);
      done(bytes > mostBytes ? tooLarge(mostBytes) : null);
    },
  });
  try {
    await pipeline([source, ...decoders, sink], { signal });
  } catch (error) {
    // An error of the connection is known to whoever destroyed the source, so this one is of a decoder.
    if (error instanceof ApiError) throw error;
    throw new ApiError('invalid_response', `the compressed body is broken: ${codeOf(error)}`);
  }
  return Buffer.concat(chunks, bytes);
}

function tooLarge(mostBytes: number): ApiError {
  return new ApiError('too_large', `the body is larger than ${mostBytes} bytes`);
}
