import { gzipSync } from 'node:zlib';
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

const MEBIBYTE = 1024 * 1024;
const GIBIBYTE = 1024 * MEBIBYTE;
const ENDLESS_BYTES = 10 * GIBIBYTE;
const PIECE = Buffer.alloc(64 * 1024, ' ');
const ZEROS = Buffer.alloc(64 * MEBIBYTE);
/** Some thousand gzip members, each of which decompresses to nothing. */
const NOTHING = Buffer.concat(Array<Buffer>(4096).fill(gzipSync('')));
const FIELDS = 1_000_000;
const DEPTH = 10_000_000;

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
function floods(): readonly Answer[] {
  const pieces = ENDLESS_BYTES / PIECE.length;
  const members = ENDLESS_BYTES / ZEROS.length;
  return [
    stream({}, PIECE, pieces),
    stream({ 'content-length': ENDLESS_BYTES }, PIECE, pieces),
    stream({ 'transfer-encoding': 'chunked' }, chunked(PIECE), pieces),
    stream({ 'content-encoding': 'gzip' }, gzipSync(ZEROS), members),
    stream({ 'content-encoding': 'gzip' }, NOTHING, ENDLESS_BYTES / NOTHING.length),
  ];
}

/** Returns the good listing with a million fields in its last item. */
function crowded(before: string, after: string): Buffer {
  const fields = Array.from({ length: FIELDS }, (_, n) => `"k${n}":0`).join();
  return Buffer.from(`${GOOD.slice(0, -2)},${before}${fields}${after}}]`);
}

export function hugeOnes(): Readonly<Record<string, Hostility>> {
  const turns = floods();
  const deepest = Buffer.from(`${TURNED.slice(0, -2)},"x":${'['.repeat(DEPTH)}`);
  return {
    'a flood of 10 GiB': {
      ends: ['too_large'],
      answer: (exchange) => turns[exchange.turn % turns.length]?.(exchange),
    },
    'nested 10,000,000 deep': { ends: ['invalid_response'], answer: listing(deepest) },
    '1,000,000 keys in an item': { ends: ['too_large'], answer: listing(crowded('', '')) },
    '1,000,000 keys within an item': {
      ends: ['too_large'],
      answer: listing(crowded('"manifest":{', '}')),
    },
  };
}
