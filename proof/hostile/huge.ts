import {
  createBrotliCompress,
  constants,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib';
import { buffer } from 'node:stream/consumers';
import { Readable } from 'node:stream';
import {
  type Answer,
  chunked,
  GOOD,
  headOf,
  type Hostility,
  listing,
  pour,
  TURNED,
} from './exchange.ts';
import type { Form } from './form.ts';

const MEBIBYTE = 1024 * 1024;
const GIBIBYTE = 1024 * MEBIBYTE;
const ENDLESS_BYTES = 10 * GIBIBYTE;
const PIECE = Buffer.alloc(64 * 1024, ' ');
const ZEROS = Buffer.alloc(64 * MEBIBYTE);
const FIELDS = 1_000_000;
const DEPTH = 10_000_000;

/** Number of `ZEROS` to compress: brotli has no members to repeat, and more takes seconds. */
const BROTLI_MEMBERS = { long: 16, short: 1, tests: 1 };

/** Sends a head and `times` pieces, then ends the connection, as some bodies have no other end. */
function stream(
  headers: Readonly<Record<string, string | number>>,
  piece: Buffer,
  times: number,
): Answer {
  return (exchange) => {
    exchange.socket.write(headOf(exchange, 200, headers));
    let left = times;
    pour(exchange, () => {
      left -= 1;
      if (left === -1) exchange.socket.end();
      return left >= 0 ? piece : undefined;
    });
  };
}

/** Returns floods of up to 10 GiB, served one after the other: together they would be a fault of another kind. */
async function floods(form: Form): Promise<readonly Answer[]> {
  const pieces = ENDLESS_BYTES / PIECE.length;
  const members = ENDLESS_BYTES / ZEROS.length;
  const brotli = Readable.from(Array<Buffer>(BROTLI_MEMBERS[form]).fill(ZEROS)).pipe(
    createBrotliCompress({ params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
  );
  return [
    stream({}, PIECE, pieces),
    stream({ 'content-length': ENDLESS_BYTES }, PIECE, pieces),
    stream({ 'transfer-encoding': 'chunked' }, chunked(PIECE), pieces),
    stream({ 'content-encoding': 'gzip' }, gzipSync(ZEROS), members),
    stream({ 'content-encoding': 'br' }, await buffer(brotli), 1),
    stream({ 'content-encoding': 'zstd' }, zstdCompressSync(ZEROS), members),
    stream({ 'content-encoding': 'deflate, gzip' }, gzipSync(deflateSync(ZEROS)), 1),
  ];
}

/** Returns the good listing with a million fields in its last item. */
function crowded(before: string, after: string): Buffer {
  const fields = Array.from({ length: FIELDS }, (_, n) => `"k${n}":0`).join();
  return Buffer.from(`${GOOD.slice(0, -2)},${before}${fields}${after}}]`);
}

export async function hugeOnes(form: Form): Promise<Readonly<Record<string, Hostility>>> {
  const turns = await floods(form);
  const deepest = Buffer.from(`${TURNED.slice(0, -2)},"x":${'['.repeat(DEPTH)}`);
  return {
    'a flood of 10 GiB': {
      ends: ['too_large'],
      answer: (exchange) => turns[exchange.turn % turns.length]?.(exchange),
    },
    'nested 10,000,000 deep': { ends: ['invalid_response'], answer: listing(deepest) },
    '1,000,000 keys in an item': { ends: ['ok'], answer: listing(crowded('', '')) },
    '1,000,000 keys within an item': {
      ends: ['ok'],
      answer: listing(crowded('"manifest":{', '}')),
    },
  };
}
