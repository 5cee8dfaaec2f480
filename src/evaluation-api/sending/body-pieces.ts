/**
 * Smaller pieces are copied together: each costs a Buffer, and even one byte of a socket read keeps the whole read in
 * memory. Node shares memory among Buffers below this size, so a piece of at least this size owns its memory.
 */
const MIN_KEPT_BYTES = Buffer.poolSize / 2;
/** Each block is twice as large as the previous one, within these limits. */
const MIN_BLOCK_BYTES = 4 * 1024;
const MAX_BLOCK_BYTES = 64 * 1024;

/** Joins small pieces of a body. Both methods throw what the caller's `onPiece` throws. */
export interface PieceJoiner {
  push(piece: Buffer): void;
  /** Passes on the bytes copied so far; called after the last piece. */
  flush(): void;
}

/**
 * Creates a joiner whose output pieces can be kept: it copies small pieces together and passes large ones on unchanged.
 * The number of output pieces grows with the bytes, about one for each 16 KiB, not with the number of input pieces.
 */
export function createPieceJoiner(onPiece: (piece: Buffer) => void): PieceJoiner {
  let blockBytes = MIN_BLOCK_BYTES / 2;
  let block = Buffer.of();
  let filled = 0;

  function flush(): void {
    if (filled === 0) return;
    const piece = block.subarray(0, filled);
    block = block.subarray(filled);
    filled = 0;
    onPiece(piece);
  }

  return {
    push: (piece) => {
      if (piece.length >= MIN_KEPT_BYTES) {
        flush();
        onPiece(piece);
        return;
      }
      for (let from = 0; from < piece.length;) {
        if (block.length === 0) {
          blockBytes = Math.min(2 * blockBytes, MAX_BLOCK_BYTES);
          block = Buffer.allocUnsafeSlow(blockBytes);
        }
        const copied = piece.copy(block, filled, from);
        filled += copied;
        from += copied;
        if (filled === block.length) flush();
      }
    },
    flush,
  };
}

/**
 * Frees the memory of a joiner's pieces at once; they must not be used afterwards. Otherwise every 64 MB of them trigger a
 * collection of the whole heap, which costs more than all other processing of a body.
 */
export function releasePieces(pieces: readonly Buffer[]): void {
  for (const { buffer } of pieces) {
    // Several pieces can share one buffer.
    if (buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0);
  }
}

/**
 * Creates a function that copies the bytes from `start` to `end` out of a body in pieces. Reading in ascending order is
 * cheap. Both positions have to lie in the body.
 */
export function createPieceReader(
  pieces: readonly Uint8Array[],
): (start: number, end: number) => Buffer {
  let index = 0;
  /** Position of the piece at `index` in the body. */
  let begin = 0;

  return (start, end) => {
    if (start < begin) [index, begin] = [0, 0];
    const bytes = Buffer.allocUnsafe(end - start);
    for (let done = 0; ;) {
      const piece = pieces[index];
      if (piece === undefined) return bytes;
      const from = start + done - begin;
      if (from < piece.length) {
        const some = piece.subarray(from, end - begin);
        bytes.set(some, done);
        done += some.length;
      }
      if (start + done >= end) return bytes;
      begin += piece.length;
      index += 1;
    }
  };
}
