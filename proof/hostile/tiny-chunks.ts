import { crc32 } from 'node:zlib';
import { GOOD } from './exchange.ts';

/** The good listing as a body of as many chunks as possible. */
export interface TinyChunks {
  readonly name: string;
  /** The whole answer, piece by piece. */
  readonly wire: () => Iterable<Buffer>;
}

const SLICE = 64 * 1024;
/** Size of a body, below `max_response_size`. */
const MAX_BYTES = 60_000_000;
/** Sizes of the HTTP chunks, and of the data in each compressed block. */
const SIZES = [1, 7];

/** Format of a body in blocks that compress nothing. */
interface Coding {
  readonly name: string;
  readonly begin: readonly number[];
  readonly head: (size: number) => readonly number[];
  readonly end: (body: Buffer) => readonly number[];
}

const stored = (size: number) => [0, size, 0, size ^ 0xff, 0xff];
const lastStored = [1, 0, 0, 0xff, 0xff];
const littleEndian = (number: number) => [0, 8, 16, 24].map((shift) => (number >>> shift) & 0xff);

const CODINGS: Readonly<Record<string, Coding>> = {
  gzip: {
    name: 'gzip',
    begin: [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3],
    head: stored,
    end: (body) => [...lastStored, ...littleEndian(crc32(body)), ...littleEndian(body.length)],
  },
  deflate: {
    name: 'deflate',
    begin: [0x78, 0x01],
    head: stored,
    end: (body) => [...lastStored, ...littleEndian(adler32(body)).toReversed()],
  },
  'raw deflate': { name: 'deflate', begin: [], head: stored, end: () => lastStored },
  br: {
    name: 'br',
    // A window of 64 KiB, and an empty block of metadata up to the next byte.
    begin: [0x0c],
    head: (size) => [((size - 1) << 3) & 0xff, 0, 0x08],
    end: () => [3],
  },
  zstd: {
    name: 'zstd',
    begin: [0x28, 0xb5, 0x2f, 0xfd, 0, 0x50],
    head: (size) => [size << 3, 0, 0],
    end: () => [1, 0, 0],
  },
};

/** Returns the good listing in every coding, each in about this many chunks. */
export function tinyChunks(chunks: { readonly plain: number; readonly coded: number }) {
  return SIZES.flatMap((size): readonly TinyChunks[] => [
    {
      name: `chunks of ${size}`,
      wire: () => chunked(padded(Math.min(chunks.plain * size, MAX_BYTES)), size, ''),
    },
    ...Object.entries(CODINGS).map(([name, coding]): TinyChunks => {
      const perBlock = (size + coding.head(size).length) / size;
      const body = padded(Math.floor((chunks.coded * size) / perBlock / size) * size);
      return {
        name: `${name}, chunks of ${size}`,
        wire: () =>
          chunked(encode(body, size, coding), size, `content-encoding: ${coding.name}\r\n`),
      };
    }),
  ]);
}

/** Returns the good listing, padded to a length by an unknown field. */
function padded(length: number): Buffer {
  const rest = length - GOOD.length - '"x":"",'.length;
  return Buffer.from(GOOD.replace('{', `{"x":"${'x'.repeat(Math.max(0, rest))}",`));
}

function encode(body: Buffer, size: number, { begin, head, end }: Coding): Buffer {
  const parts: Buffer[] = [Buffer.from(begin)];
  const prefix = Buffer.from(head(size));
  const whole = Math.floor(body.length / size) * size;
  const step = prefix.length + size;
  const blocks = Buffer.alloc((whole / size) * step);
  for (let at = 0, to = 0; at < whole; at += size, to += step) {
    prefix.copy(blocks, to);
    body.copy(blocks, to + prefix.length, at, at + size);
  }
  parts.push(blocks);
  if (whole < body.length) {
    const rest = body.subarray(whole);
    parts.push(Buffer.from(head(rest.length)), rest);
  }
  return Buffer.concat([...parts, Buffer.from(end(body))]);
}

function* chunked(body: Buffer, size: number, headers: string): Generator<Buffer> {
  yield Buffer.from(
    `HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n${headers}\r\n`,
  );
  for (let from = 0; from < body.length; from += SLICE * size) {
    const slice = body.subarray(from, from + SLICE * size);
    yield framesOf(slice, size);
  }
  yield Buffer.from('0\r\n\r\n');
}

function framesOf(slice: Buffer, size: number): Buffer {
  const text = slice.toString('latin1');
  const frames: string[] = [];
  for (let at = 0; at < text.length; at += size) {
    const chunk = text.slice(at, at + size);
    frames.push(`${chunk.length.toString(16)}\r\n${chunk}\r\n`);
  }
  return Buffer.from(frames.join(''), 'latin1');
}

function adler32(body: Buffer): number {
  let [a, b] = [1, 0];
  for (const byte of body) {
    a = (a + byte) % 65_521;
    b = (b + a) % 65_521;
  }
  return ((b << 16) | a) >>> 0;
}
