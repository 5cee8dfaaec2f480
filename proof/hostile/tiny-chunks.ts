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

/** Head of a gzip body, of a stored block of a size, and of the last block, which is empty. */
const GZIP = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
const stored = (size: number) => [0, size, 0, size ^ 0xff, 0xff];
const LAST = [1, 0, 0, 0xff, 0xff];
const littleEndian = (number: number) => [0, 8, 16, 24].map((shift) => (number >>> shift) & 0xff);

/** Returns the good listing, plain and in gzip blocks that compress nothing, each in about this many chunks. */
export function tinyChunks(chunks: { readonly plain: number; readonly coded: number }) {
  return SIZES.flatMap((size): readonly TinyChunks[] => {
    const perBlock = (size + stored(size).length) / size;
    const body = padded(Math.floor((chunks.coded * size) / perBlock / size) * size);
    return [
      {
        name: `chunks of ${size}`,
        wire: () => chunked(padded(Math.min(chunks.plain * size, MAX_BYTES)), size, ''),
      },
      {
        name: `gzip, chunks of ${size}`,
        wire: () => chunked(inBlocks(body, size), size, 'content-encoding: gzip\r\n'),
      },
    ];
  });
}

/** Returns the good listing after so much white space that it has this length. */
function padded(length: number): Buffer {
  return Buffer.from(GOOD.padStart(length));
}

function inBlocks(body: Buffer, size: number): Buffer {
  const parts: Buffer[] = [Buffer.from(GZIP)];
  const prefix = Buffer.from(stored(size));
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
    parts.push(Buffer.from(stored(rest.length)), rest);
  }
  const end = [...LAST, ...littleEndian(crc32(body)), ...littleEndian(body.length)];
  return Buffer.concat([...parts, Buffer.from(end)]);
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
