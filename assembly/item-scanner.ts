/**
 * Finds the items of a JSON array in a body that arrives in pieces, and hashes the bytes of each. An item is the text
 * between two commas of the outer array, white space included; its JSON is not validated here. Compiled to WebAssembly
 * by `npm run generate`; src/client/listing/scanner.ts is the only caller.
 */

// Memory layout: seeds, the state of one body (zeros at its beginning), bytes carried over from its last piece, the piece
// itself, and the items that end in it. Between two pieces, the caller saves the state and the carried bytes.

/** Four random u64. */
export const SEEDS: usize = 0;

export const STATE: usize = 32;
const HASH_A: usize = 32;
const HASH_B: usize = 40;
/** Digest over the hashes of all items in order and over the bytes around the array, u64. */
export const DIGEST: usize = 48;
const IN_STRING: usize = 56;
const ESCAPED: usize = 64;
const DEPTH: usize = 72;
/** u32, one of the phases below. */
export const PHASE: usize = 76;
/** Number of bytes of the body that were scanned, u32. */
const SCANNED: usize = 80;
/** Start of the first item in the body, u32. */
export const FIRST: usize = 84;
/** Number of bytes of the open item that were hashed. */
const HASHED: usize = 88;
/** Number of bytes before the piece: those of the open item not yet hashed, the last of them not yet scanned. */
const CARRIED: usize = 92;
const NOT_SCANNED: usize = 96;
/** Number of bytes of a byte order mark that were read. */
const MARK: usize = 100;
const HASH_C: usize = 104;
const HASH_D: usize = 112;

/** The piece to scan, and its maximum size in bytes. */
export const PIECE: usize = 256;
export const MAX_PIECE_BYTES: usize = 65536;

const BLOCK: usize = 64;
const STRIPE: usize = 64;

/** Ends of the items, u32 positions in the body, and their hashes, u64. */
export const ENDS: usize = PIECE + MAX_PIECE_BYTES + BLOCK;
export const HASHES: usize = ENDS + 4 * (MAX_PIECE_BYTES + BLOCK);

const BEFORE: u32 = 0;
const WITHIN: u32 = 1;
const AFTER: u32 = 2;
const NO_LIST: u32 = 3;
const TOO_DEEP: u32 = 4;
const BROKEN: u32 = 5;

/** Maximum nesting of arrays and objects, the outermost being 1. */
const MAX_DEPTH: i32 = 64;

/** Scans the `length` bytes at `PIECE`; `last` marks the end of the body. Returns the number of items that ended. */
export function scan(length: usize, last: bool): usize {
  const end = PIECE + length;
  let open = PIECE - load<u32>(CARRIED);
  let at = PIECE - load<u32>(NOT_SCANNED);
  if (load<u32>(PHASE) == BEFORE) {
    at = findFirst(at, end);
    open = at;
  }
  let count: usize = 0;
  if (load<u32>(PHASE) == WITHIN) {
    // Address of position 0 of the body.
    const origin = at - load<u32>(SCANNED);
    if (last) memory.fill(end, 0x20, BLOCK);
    count = findEnds(at, last ? end + BLOCK : end);
    at = origin + load<u32>(SCANNED);
    open = hashItems(open, at, origin, count);
  }
  if (load<u32>(PHASE) == AFTER) {
    for (; at < end; at++) {
      const byte = load<u8>(at);
      if (!isSpace(byte)) store<u32>(PHASE, BROKEN);
      digestByte(byte);
    }
  }
  if (last && load<u32>(PHASE) == BEFORE) store<u32>(PHASE, NO_LIST);
  if (last && load<u32>(PHASE) == WITHIN) store<u32>(PHASE, BROKEN);
  const isOpen = load<u32>(PHASE) == WITHIN;
  const carried = isOpen ? end - open : 0;
  memory.copy(PIECE - carried, open, carried);
  store<u32>(CARRIED, <u32>carried);
  store<u32>(NOT_SCANNED, isOpen ? <u32>(end - at) : 0);
  return count;
}

/** Finds the opening bracket, after an optional byte order mark. Returns the address to continue at. */
function findFirst(from: usize, end: usize): usize {
  let position = load<u32>(SCANNED);
  let mark = load<u32>(MARK);
  let at = from;
  while (at < end) {
    const byte = load<u8>(at++);
    if (mark == position && mark < 3 && byte == markByte(mark)) {
      mark++;
    } else if (mark == 1 || mark == 2 || !(byte == 0x5b || isSpace(byte))) {
      store<u32>(PHASE, NO_LIST);
      break;
    }
    position++;
    digestByte(byte);
    if (byte == 0x5b) {
      store<u32>(PHASE, WITHIN);
      store<u32>(DEPTH, 1);
      store<u32>(FIRST, position);
      store<u64>(HASH_A, seed(0));
      store<u64>(HASH_B, seed(1));
      store<u64>(HASH_C, seed(2));
      store<u64>(HASH_D, seed(3));
      break;
    }
  }
  store<u32>(MARK, mark);
  store<u32>(SCANNED, position);
  return at;
}

/** Scans whole blocks and stores the ends of items, up to the array's closing bracket. Returns their number. */
function findEnds(from: usize, end: usize): usize {
  let position = load<u32>(SCANNED);
  let depth = load<i32>(DEPTH);
  let inString = load<u64>(IN_STRING);
  let escaped = load<u64>(ESCAPED);
  let count: usize = 0;
  for (let at = from; at + BLOCK <= end; at += BLOCK, position += <u32>BLOCK) {
    const a = v128.load(at);
    const b = v128.load(at, 16);
    const c = v128.load(at, 32);
    const d = v128.load(at, 48);

    let escapes = escaped;
    if (!isAnywhere(0x5c, a, b, c, d)) {
      escaped = 0;
    } else {
      const backslashes = where(0x5c, a, b, c, d);
      // simdjson's method to distinguish odd from even runs of backslashes.
      const starting = backslashes & ~escaped;
      const following = (starting << 1) | escaped;
      const oddStarts = starting & 0xaaaaaaaaaaaaaaaa & ~following;
      const ends = oddStarts + starting;
      escaped = u64(ends < oddStarts);
      escapes = (0x5555555555555555 ^ (ends << 1)) & following;
    }
    let strings = where(0x22, a, b, c, d) & ~escapes;
    strings ^= strings << 1;
    strings ^= strings << 2;
    strings ^= strings << 4;
    strings ^= strings << 8;
    strings ^= strings << 16;
    strings ^= strings << 32;
    strings ^= inString;
    inString = <u64>((<i64>strings) >> 63);

    // Setting three bits maps brackets and braces to one value; other bytes with that value occur only in strings or
    // invalid JSON.
    const bits = i8x16.splat(0x26);
    const brackets =
      where(0x7f, v128.or(a, bits), v128.or(b, bits), v128.or(c, bits), v128.or(d, bits)) &
      ~strings;
    // In a block without brackets inside a nested value, no comma separates items.
    if (brackets == 0 && depth > 1) continue;
    const opening = either(0x5b, 0x7b, a, b, c, d) & brackets;
    const closing = either(0x5d, 0x7d, a, b, c, d) & brackets;
    const commas = where(0x2c, a, b, c, d) & ~strings;
    for (let marks = opening | closing | commas; marks != 0; marks &= marks - 1) {
      const mark = marks & (0 - marks);
      if ((mark & opening) != 0) {
        if (++depth > MAX_DEPTH) {
          store<u32>(PHASE, TOO_DEEP);
          return count;
        }
        continue;
      }
      const isComma = (mark & commas) != 0;
      if (!isComma) depth--;
      if (depth > (isComma ? 1 : 0)) continue;
      const here = position + <u32>ctz(mark);
      store<u32>(ENDS + 4 * count++, here);
      if (!isComma) {
        const isBracket = load<u8>(at + <usize>ctz(mark)) == 0x5d;
        store<u32>(PHASE, isBracket ? AFTER : BROKEN);
        store<u32>(SCANNED, here + 1);
        return count;
      }
    }
  }
  store<u32>(SCANNED, position);
  store<i32>(DEPTH, depth);
  store<u64>(IN_STRING, inString);
  store<u64>(ESCAPED, escaped);
  return count;
}

/**
 * Hashes the items that have ended, the first of which begins at `from` or before, and the available part of the next one.
 * Returns the address of the first byte not hashed.
 */
function hashItems(from: usize, end: usize, origin: usize, count: usize): usize {
  const seed0 = seed(0);
  const seed1 = seed(1);
  const seed2 = seed(2);
  const seed3 = seed(3);
  let hashA = load<u64>(HASH_A);
  let hashB = load<u64>(HASH_B);
  let hashC = load<u64>(HASH_C);
  let hashD = load<u64>(HASH_D);
  let hashed = load<u32>(HASHED);
  let digest = load<u64>(DIGEST);
  let at = from;
  for (let item: usize = 0; item <= count; item++) {
    const stop = item < count ? origin + load<u32>(ENDS + 4 * item) : end;
    hashed += <u32>(stop - at);
    for (; at + STRIPE <= stop; at += STRIPE) {
      hashA = mix(load<u64>(at) ^ hashA, load<u64>(at, 8) ^ seed2);
      hashB = mix(load<u64>(at, 16) ^ hashB, load<u64>(at, 24) ^ seed3);
      hashC = mix(load<u64>(at, 32) ^ hashC, load<u64>(at, 40) ^ seed0);
      hashD = mix(load<u64>(at, 48) ^ hashD, load<u64>(at, 56) ^ seed1);
    }
    if (item == count) break;
    for (; at + 8 <= stop; at += 8) hashA = mix(load<u64>(at) ^ hashA, seed2);
    if (at < stop) hashB = mix((load<u64>(at) & firstBytes(<u64>(stop - at))) ^ hashB, seed3);
    const hash = mix(mix(hashA ^ seed3, hashB ^ seed2 ^ hashed) ^ hashC, hashD ^ seed1);
    store<u64>(HASHES + 8 * item, hash);
    digest = mix(digest ^ hash, seed2);
    hashA = seed0;
    hashB = seed1;
    hashC = seed2;
    hashD = seed3;
    hashed = 0;
    at = stop + 1;
  }
  store<u64>(HASH_A, hashA);
  store<u64>(HASH_B, hashB);
  store<u64>(HASH_C, hashC);
  store<u64>(HASH_D, hashD);
  store<u32>(HASHED, hashed - <u32>(end - at));
  store<u64>(DIGEST, digest);
  return at;
}

function digestByte(byte: u8): void {
  store<u64>(DIGEST, mix(load<u64>(DIGEST) ^ byte, seed(3)));
}

function seed(index: usize): u64 {
  return load<u64>(SEEDS + 8 * index);
}

/** Mixes like wyhash: XOR of both halves of the product. */
function mix(a: u64, b: u64): u64 {
  const aLow = a & 0xffffffff;
  const aHigh = a >> 32;
  const bLow = b & 0xffffffff;
  const bHigh = b >> 32;
  const low = aLow * bLow;
  const middle = aHigh * bLow + (low >> 32);
  const other = aLow * bHigh + (middle & 0xffffffff);
  const high = aHigh * bHigh + (middle >> 32) + (other >> 32);
  return ((other << 32) | (low & 0xffffffff)) ^ high;
}

/** Returns a mask of the first `count` bytes of a word, fewer than 8. */
function firstBytes(count: u64): u64 {
  const one: u64 = 1;
  return (one << (count * 8)) - 1;
}

/** Returns a bit for each of 64 bytes, set where the byte equals `byte`. */
function where(byte: u8, a: v128, b: v128, c: v128, d: v128): u64 {
  const wanted = i8x16.splat(byte);
  return (
    (<u64>i8x16.bitmask(i8x16.eq(a, wanted))) |
    ((<u64>i8x16.bitmask(i8x16.eq(b, wanted))) << 16) |
    ((<u64>i8x16.bitmask(i8x16.eq(c, wanted))) << 32) |
    ((<u64>i8x16.bitmask(i8x16.eq(d, wanted))) << 48)
  );
}

/** Like `where`, for either of two bytes. */
function either(one: u8, other: u8, a: v128, b: v128, c: v128, d: v128): u64 {
  return where(one, a, b, c, d) | where(other, a, b, c, d);
}

function isAnywhere(byte: u8, a: v128, b: v128, c: v128, d: v128): bool {
  const wanted = i8x16.splat(byte);
  const ab = v128.or(i8x16.eq(a, wanted), i8x16.eq(b, wanted));
  const cd = v128.or(i8x16.eq(c, wanted), i8x16.eq(d, wanted));
  return v128.any_true(v128.or(ab, cd));
}

/** Returns whether a byte is white space in JSON. */
function isSpace(byte: u8): bool {
  return byte == 0x20 || byte == 0x09 || byte == 0x0a || byte == 0x0d;
}

function markByte(index: u32): u8 {
  return index == 0 ? 0xef : index == 1 ? 0xbb : 0xbf;
}
