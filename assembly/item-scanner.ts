/**
 * Finds the items of a JSON array in a body that comes piece by piece, and hashes the bytes of each. An item is what lies
 * between two commas of the outer array, white space included; whether it is JSON is for others to find out. Compiled to
 * WebAssembly by `npm run generate`; src/evaluation-api/listing/item-scanner.ts is the only caller.
 */

// The memory: seeds, the state of one body (zeros at its beginning), bytes carried over from its last piece, the piece
// itself, and the items that end in it. State and carried bytes are what a caller keeps of a body until it goes on.

/** Four random u64. */
export const SEEDS: usize = 0;

export const STATE: usize = 32;
const HASH_A: usize = 32;
const HASH_B: usize = 40;
/** Over the hashes of all items in their order and what stands around the array, u64. */
export const DIGEST: usize = 48;
const IN_STRING: usize = 56;
const ESCAPED: usize = 64;
const DEPTH: usize = 72;
/** u32, one of the phases below. */
export const PHASE: usize = 76;
/** How much of the body was scanned, u32. */
const SCANNED: usize = 80;
/** Where its first item begins, u32. */
export const FIRST: usize = 84;
/** Bytes of the open item that were hashed. */
const HASHED: usize = 88;
/** Bytes that stand before the piece: those of the open item which were not hashed, then those not scanned. */
const CARRIED: usize = 92;
const NOT_SCANNED: usize = 96;
/** Bytes of a byte order mark that were seen. */
const MARK: usize = 100;
const HASH_C: usize = 104;
const HASH_D: usize = 112;

/** The piece that is to be scanned, of so many bytes at most. */
export const PIECE: usize = 256;
export const MAX_PIECE_BYTES: usize = 65536;

const BLOCK: usize = 64;
const STRIPE: usize = 64;

/** Where the items end, u32 positions in the body; and their hashes, u64. */
export const ENDS: usize = PIECE + MAX_PIECE_BYTES + BLOCK;
export const HASHES: usize = ENDS + 4 * (MAX_PIECE_BYTES + BLOCK);

const BEFORE: u32 = 0;
const WITHIN: u32 = 1;
const AFTER: u32 = 2;
const NO_LIST: u32 = 3;
const TOO_DEEP: u32 = 4;
const BROKEN: u32 = 5;

/** Arrays and objects within each other, the outermost being 1. */
const MAX_DEPTH: i32 = 64;

/** Scans the `length` bytes at `PIECE`; `last` if the body ends with them. Returns how many items ended. */
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
    // Position 0 of the body would stand here.
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

/** Looks for the opening bracket; a byte order mark may come first. Returns where to go on. */
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

/** Scans whole blocks and notes where items end, up to the array's closing bracket. Returns how many did. */
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
      // simdjson's way to tell the odd from the even in a run of backslashes.
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

    // Three bits make the same of brackets and braces; what else they make it of stands in strings only, or is no JSON.
    const bits = i8x16.splat(0x26);
    const brackets =
      where(0x7f, v128.or(a, bits), v128.or(b, bits), v128.or(c, bits), v128.or(d, bits)) &
      ~strings;
    // Inside of an item that neither begins nor ends here no comma counts.
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
 * Hashes the items that have ended, the first of which begins at `from` or before, and the next one as far as it goes.
 * Returns where the bytes begin that are not hashed.
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

/** Both halves of the product, one on the other: what wyhash mixes with. */
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

/** A mask of fewer than 8 bytes of a word. */
function firstBytes(count: u64): u64 {
  const one: u64 = 1;
  return (one << (count * 8)) - 1;
}

/** A bit for each of 64 bytes, set where it is `byte`. */
function where(byte: u8, a: v128, b: v128, c: v128, d: v128): u64 {
  const wanted = i8x16.splat(byte);
  return (
    (<u64>i8x16.bitmask(i8x16.eq(a, wanted))) |
    ((<u64>i8x16.bitmask(i8x16.eq(b, wanted))) << 16) |
    ((<u64>i8x16.bitmask(i8x16.eq(c, wanted))) << 32) |
    ((<u64>i8x16.bitmask(i8x16.eq(d, wanted))) << 48)
  );
}

/** The same for two bytes, of which either will do. */
function either(one: u8, other: u8, a: v128, b: v128, c: v128, d: v128): u64 {
  return where(one, a, b, c, d) | where(other, a, b, c, d);
}

function isAnywhere(byte: u8, a: v128, b: v128, c: v128, d: v128): bool {
  const wanted = i8x16.splat(byte);
  const ab = v128.or(i8x16.eq(a, wanted), i8x16.eq(b, wanted));
  const cd = v128.or(i8x16.eq(c, wanted), i8x16.eq(d, wanted));
  return v128.any_true(v128.or(ab, cd));
}

/** What JSON takes for white space. */
function isSpace(byte: u8): bool {
  return byte == 0x20 || byte == 0x09 || byte == 0x0a || byte == 0x0d;
}

function markByte(index: u32): u8 {
  return index == 0 ? 0xef : index == 1 ? 0xbb : 0xbf;
}
