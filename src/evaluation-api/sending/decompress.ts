import { Duplex, pipeline, Readable } from 'node:stream';
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from 'node:zlib';
import { ApiError } from '../../monitor/errors.ts';

/** Accepted content codings, in order of preference. */
export const ACCEPT_ENCODING = 'gzip, br, zstd, deflate';

/** A decoder passes its work to another thread for each so many decompressed bytes; by default for 16 KiB. */
const chunkSize = 64 * 1024;
/** Limits the nesting of codings; one is usual. */
const MAX_CODINGS = 3;
/** 8 MiB, the limit for HTTP; a frame could demand far more memory. */
const ZSTD_WINDOW_LOG = 23;

/**
 * Returns the decoders for a `Content-Encoding`, in the order of their use; none for a plain body.
 * @throws {ApiError} `invalid_response`, for a coding that was not requested
 */
export function decodersFor(header: string | readonly string[] | undefined): readonly Duplex[] {
  const codings = [header ?? []]
    .flat()
    .join(',')
    .split(',')
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => coding !== '' && coding !== 'identity');
  if (codings.length > MAX_CODINGS) {
    throw new ApiError('invalid_response', 'the body is compressed too many times');
  }
  return codings.toReversed().map(decoderFor);
}

function decoderFor(coding: string): Duplex {
  switch (coding) {
    case 'gzip':
    case 'x-gzip':
      return createGunzip({ chunkSize });
    case 'br':
      return createBrotliDecompress({ chunkSize });
    case 'zstd':
      return createZstdDecompress({
        chunkSize,
        params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG },
      });
    case 'deflate':
      return Duplex.from(inflate);
    default:
      throw new ApiError(
        'invalid_response',
        'the body is compressed in a way that was not requested',
      );
  }
}

/** Decodes `deflate`, which some services send without the required zlib header: the first byte shows which. */
async function* inflate(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const chunks = source[Symbol.asyncIterator]();
  const first = await chunks.next();
  if (first.done === true) return;
  const hasHeader = ((first.value[0] ?? 0) & 0x0f) === 0x08;
  const decoder = hasHeader ? createInflate({ chunkSize }) : createInflateRaw({ chunkSize });
  const whole = async function* () {
    yield first.value;
    yield* { [Symbol.asyncIterator]: () => chunks };
  };
  // An error destroys the decoder and thus reaches its reader.
  pipeline(Readable.from(whole()), decoder, () => {});
  yield* decoder;
}
