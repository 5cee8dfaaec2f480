import { ApiError } from '../../monitor/errors.ts';
import { BYTES_PER_TURN } from '../../monitor/steps.ts';
import { createByteBuffer, type ByteBuffer } from '../sending/byte-buffer.ts';
import type { OnPart } from './item-scanner.ts';

/** Maximum that is parsed at once, about two milliseconds; a larger item is parsed alone. */
const STRETCH_BYTES = BYTES_PER_TURN;
const STRETCH_ITEMS = 4096;
/** Largest item of a listing (docs/specification.md#fetching). */
const MAX_ITEM_BYTES = 1024 * 1024;

const COMMA = Buffer.from(',');

/** New items of a listing, to be parsed together. */
export interface Stretch {
  /** The items, each between two commas. */
  readonly text: ByteBuffer;
  /** Position of each item in the listing. */
  readonly indexes: readonly number[];
}

export interface CollectorOptions {
  /** Called with the hash of each item, in order. The bytes of known items are dropped. */
  readonly isKnown: (low: number, high: number) => boolean;
  readonly onStretch: (stretch: Stretch) => void;
  /** Returns an empty buffer for the next stretch. */
  readonly newBuffer: () => ByteBuffer;
}

/** Copies the new items out of a body that arrives in parts, and keeps nothing else of it. */
export interface ItemCollector {
  /** @throws {ApiError} `too_large`, as soon as an item is */
  readonly onPart: OnPart;
  /** Passes on the items collected since the last full stretch. */
  flush(): void;
}

export function createItemCollector(options: CollectorOptions): ItemCollector {
  const { isKnown, onStretch, newBuffer } = options;
  /** Bytes of the body before the current part from the start of the open item on. */
  const open = createByteBuffer();
  /** Start of the open item in the body; 0 before the first one. */
  let start = 0;
  /** Position of the current part in the body. */
  let position = 0;
  let index = 0;
  let text = newBuffer();
  let indexes: number[] = [];

  function flush(): void {
    if (indexes.length === 0) return;
    text.append(COMMA);
    onStretch({ text, indexes });
    text = newBuffer();
    indexes = [];
  }

  /** Copies the bytes of the open item up to `end`, from those of earlier parts and from this one. */
  function collect(part: Buffer, end: number): void {
    throwIfTooLarge(end);
    const isFull = indexes.length === STRETCH_ITEMS || text.length() + end - start > STRETCH_BYTES;
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
    return position - open.length();
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
