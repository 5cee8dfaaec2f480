import { randomFillSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ApiError } from '../../monitor/errors.ts';

/** Maximum that is parsed at once, about two milliseconds; a larger item is parsed alone. */
const STRETCH_BYTES = 256 * 1024;
const STRETCH_ITEMS = 4096;
/** Largest item of a listing (docs/specification.md#fetching). */
const MAX_ITEM_BYTES = 1024 * 1024;

/** Capacity with which a buffer begins, and beyond which it gives its memory back when it is emptied, bytes. */
const MIN_CAPACITY = 4 * 1024;
const MAX_KEPT_CAPACITY = 512 * 1024;

const COMMA = Buffer.from(',');

/** The phase of assembly/item-scanner.ts in which the array is open. */
const WITHIN = 1;
/** Error messages by the phase in which assembly/item-scanner.ts ended. */
const FAULTS: ReadonlyMap<number, string> = new Map([
  [3, 'the body is not a JSON array'],
  [4, 'the body is nested deeper than 64'],
  [5, 'the body is not JSON: its array has no end, or more follows it'],
]);

/** What ended in a part of a body, which is not validated. Valid until the next part is scanned. */
interface Scanned {
  /** Number of items that ended. */
  readonly count: number;
  /** Position in the body at which each of them ends. They can lie up to 63 bytes before the part. */
  readonly ends: Uint32Array;
  /** A hash of 64 bits for each of them, as two numbers; equal for equal bytes. */
  readonly hashes: Uint32Array;
  /** Position of the first item of the body; 0 before it. Each further item starts after the comma that ends the previous one. */
  readonly first: number;
  readonly phase: number;
  /** Of all bytes so far. */
  readonly digest: bigint;
}

/** How far the scan of one body has come, while another one is scanned. */
interface ScanState {
  saved: Uint8Array | undefined;
}

/**
 * Finds and hashes the items of bodies. It scans any number of bodies concurrently in constant memory.
 * Hashes and digests are comparable only within one scanner: random seeds keep a service from constructing bytes that
 * collide.
 */
export class ItemScanner {
  readonly maxItems: number;
  readonly maxPartBytes: number;
  readonly #code = instantiate();
  readonly #bytes: Uint8Array;
  readonly #words: DataView;
  readonly #ends: Uint32Array;
  readonly #hashes: Uint32Array;
  /** The state that is currently in the memory. */
  #current: ScanState | undefined;

  constructor(maxItems: number) {
    const { memory, ENDS, HASHES, MAX_PIECE_BYTES, SEEDS } = this.#code;
    this.maxItems = maxItems;
    this.maxPartBytes = MAX_PIECE_BYTES.value;
    this.#bytes = new Uint8Array(memory.buffer);
    this.#words = new DataView(memory.buffer);
    this.#ends = new Uint32Array(memory.buffer, ENDS.value);
    this.#hashes = new Uint32Array(memory.buffer, HASHES.value);
    randomFillSync(this.#bytes, SEEDS.value, 32);
  }

  /** Scans the next part of a body, at most `maxPartBytes`; the last one is empty. */
  scan(state: ScanState, part: Buffer, isLast: boolean): Scanned {
    const { scan, STATE, PIECE, FIRST, PHASE, DIGEST } = this.#code;
    const [start, piece] = [STATE.value, PIECE.value];
    if (this.#current !== state) {
      if (this.#current !== undefined) this.#current.saved = this.#bytes.slice(start, piece);
      this.#bytes.set(state.saved ?? new Uint8Array(piece - start), start);
      this.#current = state;
    }
    this.#bytes.set(part, piece);
    return {
      count: scan(part.length, isLast),
      ends: this.#ends,
      hashes: this.#hashes,
      first: this.#words.getUint32(FIRST.value, true),
      phase: this.#words.getUint32(PHASE.value, true),
      digest: this.#words.getBigUint64(DIGEST.value, true),
    };
  }
}

/** New items of a listing, to be parsed together. */
export interface Stretch {
  /** The items, each between two commas. Valid until the next piece of the body. */
  readonly text: Buffer;
  /** Position of each item in the listing. */
  readonly indexes: readonly number[];
}

/** Scans a body as it arrives: copies the new items out of it, and keeps nothing else. */
export class BodyScan {
  readonly #scanner: ItemScanner;
  readonly #state: ScanState = { saved: undefined };
  readonly #isKnown: (low: number, high: number) => boolean;
  readonly #onStretch: (stretch: Stretch) => void;
  /** Bytes of the body before the current part from the start of the open item on. */
  readonly #open = new ByteBuffer();
  readonly #text = new ByteBuffer();
  #indexes: number[] = [];
  /** Start of the open item in the body; 0 before the first one. */
  #start = 0;
  /** Position of the current part in the body. */
  #position = 0;
  /** Number of items that have ended. */
  #count = 0;

  /** @param isKnown called with the hash of each item, in order; the bytes of known items are dropped */
  constructor(
    scanner: ItemScanner,
    isKnown: (low: number, high: number) => boolean,
    onStretch: (stretch: Stretch) => void,
  ) {
    this.#scanner = scanner;
    this.#isKnown = isKnown;
    this.#onStretch = onStretch;
  }

  /** Scans the next piece of the body. @throws {ApiError} `too_large`, as soon as there are too many items, or one is */
  push(piece: Buffer): void {
    const { maxPartBytes } = this.#scanner;
    for (let from = 0; from < piece.length; from += maxPartBytes) {
      this.#scan(piece.subarray(from, from + maxPartBytes), false);
    }
  }

  /**
   * Passes the last stretch on, and returns a digest of the body, equal for equal bodies; called after the last piece.
   * @throws {ApiError} `invalid_response`, if the body is no JSON array or is nested too deep; as `push`
   */
  finish(): string {
    const { phase, digest } = this.#scan(Buffer.of(), true);
    const fault = FAULTS.get(phase);
    if (fault !== undefined) throw new ApiError('invalid_response', fault);
    this.#flush();
    return digest.toString(36);
  }

  #scan(part: Buffer, isLast: boolean): Scanned {
    const { maxItems } = this.#scanner;
    const scanned = this.#scanner.scan(this.#state, part, isLast);
    const { count, ends, hashes, first, phase } = scanned;
    if (this.#count + count > maxItems) {
      const message = `the listing has more than ${maxItems} items (service.max_items)`;
      throw new ApiError('too_large', message);
    }
    if (this.#start === 0) this.#start = first;
    for (let item = 0; item < count; item += 1) {
      const end = ends[item] ?? 0;
      if (!this.#isKnown(hashes[2 * item] ?? 0, hashes[2 * item + 1] ?? 0)) this.#copy(part, end);
      this.#count += 1;
      this.#start = end + 1;
    }
    const isOpen = phase === WITHIN;
    if (isOpen && this.#start < this.#position) this.#open.drop(this.#start - this.#openStart());
    else this.#open.clear();
    if (isOpen) this.#open.append(part, Math.max(0, this.#start - this.#position));
    this.#position += part.length;
    if (isOpen) this.#throwIfTooLarge(this.#position);
    return scanned;
  }

  /** Copies the bytes of the open item up to `end`, from those of earlier parts and from this one. */
  #copy(part: Buffer, end: number): void {
    this.#throwIfTooLarge(end);
    const [start, position, text] = [this.#start, this.#position, this.#text];
    if (this.#indexes.length === STRETCH_ITEMS || text.length + end - start > STRETCH_BYTES) {
      this.#flush();
    }
    text.append(COMMA);
    const early = Math.min(position, end);
    const openStart = this.#openStart();
    if (start < early) text.append(this.#open.bytes(), start - openStart, early - openStart);
    if (end > position) text.append(part, Math.max(0, start - position), end - position);
    this.#indexes.push(this.#count);
  }

  #flush(): void {
    if (this.#indexes.length === 0) return;
    this.#text.append(COMMA);
    this.#onStretch({ text: this.#text.bytes(), indexes: this.#indexes });
    this.#text.clear();
    this.#indexes = [];
  }

  /** Throws if the open item is too large when it reaches to `end`. */
  #throwIfTooLarge(end: number): void {
    if (end - this.#start <= MAX_ITEM_BYTES) return;
    throw new ApiError(
      'too_large',
      `item ${this.#count} of the listing is larger than ${MAX_ITEM_BYTES} bytes`,
    );
  }

  #openStart(): number {
    return this.#position - this.#open.length;
  }
}

/** Bytes that are copied together. Its capacity doubles, so appending costs linear time however small the parts are. */
class ByteBuffer {
  #block = Buffer.of();
  length = 0;

  /** Copies `source` from `start` to `end` to the end of the buffer. */
  append(source: Buffer, start = 0, end = source.length): void {
    const wanted = this.length + end - start;
    if (wanted > this.#block.length) {
      const capacity = Math.max(MIN_CAPACITY, wanted, 2 * this.#block.length);
      const larger = Buffer.allocUnsafeSlow(capacity);
      this.#block.copy(larger, 0, 0, this.length);
      this.#block = larger;
    }
    this.length += source.copy(this.#block, this.length, start, end);
  }

  /** Returns all bytes. They are valid until the buffer changes. */
  bytes(): Buffer {
    return this.#block.subarray(0, this.length);
  }

  /** Removes this many bytes from the beginning. */
  drop(count: number): void {
    if (count === 0) return;
    this.#block.copyWithin(0, count, this.length);
    this.length -= count;
  }

  /** Removes all bytes, and keeps the memory for the next ones. */
  clear(): void {
    this.length = 0;
    if (this.#block.length > MAX_KEPT_CAPACITY) this.#block = Buffer.of();
  }
}

/** What assembly/item-scanner.ts exports: its memory, addresses and sizes in it, and the scan of a part that lies there. */
interface Code extends Readonly<Record<Constant, { readonly value: number }>> {
  readonly memory: { readonly buffer: ArrayBuffer };
  readonly scan: (length: number, last: boolean) => number;
}

type Constant =
  | 'DIGEST'
  | 'ENDS'
  | 'FIRST'
  | 'HASHES'
  | 'MAX_PIECE_BYTES'
  | 'PHASE'
  | 'PIECE'
  | 'SEEDS'
  | 'STATE';

function instantiate(): Code {
  const code = readFileSync(join(import.meta.dirname, 'item-scanner.wasm'));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the file is made from that source
  return new WebAssembly.Instance(new WebAssembly.Module(code)).exports as Code;
}
