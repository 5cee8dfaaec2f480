import { randomFillSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ApiError } from '../../monitor/errors.ts';

/** Items that ended in a part of a body, which are not validated. Valid until the next part is scanned. */
interface ScannedItems {
  readonly count: number;
  /** Position in the body at which each item ends. They can lie up to 63 bytes before the part. */
  readonly ends: Uint32Array;
  /** A hash of 64 bits for each item, as two numbers; equal for equal bytes. */
  readonly hashes: Uint32Array;
  /** Position of the first item of the body; 0 before it. Each further item starts after the comma that ends the previous one. */
  readonly first: number;
  /** Whether an item is open at the end of the part. */
  readonly isOpen: boolean;
}

/** The scan of one body. */
export interface BodyScan {
  /** Scans the next piece of the body. @throws {ApiError} `too_large`, as soon as there are too many items */
  readonly push: (piece: Buffer) => void;
  /**
   * Returns a digest of the body, equal for equal bodies; called after the last piece.
   * @throws {ApiError} `invalid_response`, if the body is no JSON array or is nested too deep; as `push`
   */
  finish(): string;
}

/** Called with each part of a body, at most 64 KiB, and the items that end in it; at the end with an empty part. */
export type OnPart = (part: Buffer, items: ScannedItems) => void;

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

/**
 * Creates a scanner that finds up to `maxItems` items in each body. It scans any number of bodies concurrently in
 * constant memory. Hashes and digests are comparable only within one scanner: random seeds keep a service from
 * constructing bytes that collide.
 */
export function createItemScanner(maxItems: number): (onPart: OnPart) => BodyScan {
  const { memory, scan, constant } = instantiate();
  const [state, piece, maxPieceBytes] = [
    constant('STATE'),
    constant('PIECE'),
    constant('MAX_PIECE_BYTES'),
  ];
  const [phase, first, digest] = [constant('PHASE'), constant('FIRST'), constant('DIGEST')];
  const bytes = new Uint8Array(memory);
  const words = new DataView(memory);
  const ends = new Uint32Array(memory, constant('ENDS'));
  const hashes = new Uint32Array(memory, constant('HASHES'));
  randomFillSync(bytes, constant('SEEDS'), 32);
  /** Body whose state is currently in the memory. */
  let current: { saved: Uint8Array } | undefined;

  return (onPart) => {
    const body = { saved: new Uint8Array(piece - state) };
    let items = 0;

    function run(part: Buffer, last: boolean): void {
      if (current !== body) {
        if (current !== undefined) current.saved = bytes.slice(state, piece);
        bytes.set(body.saved, state);
        current = body;
      }
      bytes.set(part, piece);
      const count = scan(part.length, last);
      items += count;
      if (items > maxItems) throw tooMany(maxItems);
      const isOpen = words.getUint32(phase, true) === WITHIN;
      onPart(part, { count, ends, hashes, first: words.getUint32(first, true), isOpen });
    }

    return {
      push: (whole) => {
        for (let from = 0; from < whole.length; from += maxPieceBytes) {
          run(whole.subarray(from, from + maxPieceBytes), false);
        }
      },
      finish: () => {
        run(Buffer.of(), true);
        const fault = FAULTS.get(words.getUint32(phase, true));
        if (fault !== undefined) throw new ApiError('invalid_response', fault);
        return words.getBigUint64(digest, true).toString(36);
      },
    };
  };
}

function tooMany(maxItems: number): ApiError {
  return new ApiError(
    'too_large',
    `the listing has more than ${maxItems} items (service.max_items)`,
  );
}

/** New items of a listing, to be parsed together. */
export interface Stretch {
  /** The items, each between two commas. Valid until the next piece of the body. */
  readonly text: Buffer;
  /** Position of each item in the listing. */
  readonly indexes: readonly number[];
}

interface CollectorOptions {
  /** Called with the hash of each item, in order. The bytes of known items are dropped. */
  readonly isKnown: (low: number, high: number) => boolean;
  readonly onStretch: (stretch: Stretch) => void;
}

/** Copies the new items out of a body that arrives in parts, and keeps nothing else of it. */
export interface ItemCollector {
  /** @throws {ApiError} `too_large`, as soon as an item is */
  readonly onPart: OnPart;
  /** Passes on the items collected since the last full stretch. */
  readonly flush: () => void;
}

export function createItemCollector(options: CollectorOptions): ItemCollector {
  const { isKnown, onStretch } = options;
  /** Bytes of the body before the current part from the start of the open item on. */
  const open = new ByteBuffer();
  const text = new ByteBuffer();
  /** Start of the open item in the body; 0 before the first one. */
  let start = 0;
  /** Position of the current part in the body. */
  let position = 0;
  let index = 0;
  let indexes: number[] = [];

  function flush(): void {
    if (indexes.length === 0) return;
    text.append(COMMA);
    onStretch({ text: text.bytes(), indexes });
    text.clear();
    indexes = [];
  }

  /** Copies the bytes of the open item up to `end`, from those of earlier parts and from this one. */
  function collect(part: Buffer, end: number): void {
    throwIfTooLarge(end);
    const isFull = indexes.length === STRETCH_ITEMS || text.length + end - start > STRETCH_BYTES;
    if (isFull) flush();
    text.append(COMMA);
    const early = Math.min(position, end);
    if (start < early) text.append(open.bytes(), start - openStart(), early - openStart());
    if (end > position) text.append(part, Math.max(0, start - position), end - position);
    indexes.push(index);
  }

  /** Throws if the open item is too large when it reaches to `end`. */
  function throwIfTooLarge(end: number): void {
    if (end - start <= MAX_ITEM_BYTES) return;
    throw new ApiError(
      'too_large',
      `item ${index} of the listing is larger than ${MAX_ITEM_BYTES} bytes`,
    );
  }

  function openStart(): number {
    return position - open.length;
  }

  return {
    onPart: (part, { count, ends, hashes, first, isOpen }) => {
      if (start === 0) start = first;
      for (let item = 0; item < count; item += 1) {
        const end = ends[item] ?? 0;
        if (!isKnown(hashes[2 * item] ?? 0, hashes[2 * item + 1] ?? 0)) collect(part, end);
        index += 1;
        start = end + 1;
      }
      if (isOpen && start < position) open.drop(start - openStart());
      else open.clear();
      if (isOpen) open.append(part, Math.max(0, start - position));
      position += part.length;
      if (isOpen) throwIfTooLarge(position);
    },
    flush,
  };
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

interface Instance {
  readonly memory: ArrayBuffer;
  readonly scan: (length: number, last: boolean) => number;
  /** Returns an exported constant: an address in the memory, or a number of bytes. */
  readonly constant: (name: string) => number;
}

function instantiate(): Instance {
  const code = readFileSync(join(import.meta.dirname, 'item-scanner.wasm'));
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(code));
  const { memory, scan } = exports;
  if (!(memory instanceof WebAssembly.Memory) || typeof scan !== 'function') {
    throw new TypeError(
      'item-scanner.wasm does not export a memory and a scan function: run npm run generate',
    );
  }
  return {
    memory: memory.buffer,
    scan: (length, last) => Number(scan(length, last)),
    constant: (name) => {
      const value = exports[name];
      return value instanceof WebAssembly.Global ? Number(value.value) : Number.NaN;
    },
  };
}
