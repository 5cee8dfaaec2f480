const MIN_CAPACITY = 4 * 1024;
/** A buffer that grew beyond this gives its memory back when it is emptied. */
const MAX_KEPT_CAPACITY = 512 * 1024;

/** Bytes that are copied together. Its capacity doubles, so appending costs linear time however small the parts are. */
export interface ByteBuffer {
  readonly length: () => number;
  /** Copies `source` from `start` to `end` to the end of the buffer. */
  append(source: Buffer, start?: number, end?: number): void;
  /** Returns all bytes. They are valid until the buffer changes. */
  bytes(): Buffer;
  /** Removes this many bytes from the beginning. */
  drop(count: number): void;
  /** Removes all bytes, and keeps the memory for the next ones. */
  clear(): void;
  /** Returns all bytes, which the caller may keep, and removes them. */
  take(): Buffer;
}

export function createByteBuffer(): ByteBuffer {
  let block = Buffer.of();
  let length = 0;

  function reserve(wanted: number): void {
    if (wanted <= block.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(MIN_CAPACITY, wanted, 2 * block.length));
    block.copy(larger, 0, 0, length);
    block = larger;
  }

  function clear(): void {
    length = 0;
    if (block.length > MAX_KEPT_CAPACITY) block = Buffer.of();
  }

  return {
    length: () => length,
    append: (source, start = 0, end = source.length) => {
      reserve(length + end - start);
      length += source.copy(block, length, start, end);
    },
    bytes: () => block.subarray(0, length),
    drop: (count) => {
      if (count === 0) return;
      block.copyWithin(0, count, length);
      length -= count;
    },
    clear,
    take: () => {
      const taken = block.subarray(0, length);
      block = Buffer.of();
      length = 0;
      return taken;
    },
  };
}
