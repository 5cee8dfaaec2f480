/**
 * Smaller pieces are copied: each costs a Buffer of its own, and may be one byte of a read of the socket, which stays in
 * memory with it. Node lets Buffers below this size share memory with others, so a piece of this size is its own.
 */
const MIN_KEPT_BYTES = Buffer.poolSize / 2;
/** A block is twice as large as the one before it, between these. */
const MIN_BLOCK_BYTES = 4 * 1024;
const MAX_BLOCK_BYTES = 64 * 1024;

/** Takes pieces of a body as they come. What the caller's `onPiece` throws comes out of either method. */
export interface PieceJoiner {
  push(piece: Buffer): void;
  /** Passes on what was copied so far; to be called after the last piece. */
  flush(): void;
}

/**
 * Passes a body on in pieces that may be kept: small ones are copied together, large ones are passed on as they are. However
 * small the pieces are in which a body comes, it is passed on in one for each 16 KiB at most, and a few more.
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
 * Gives the memory of pieces that came from a joiner back at once: nobody may look at them any more, nor write to them.
 * Otherwise they wait for a collection of the whole heap, and call for one every 64 MB, which costs more than all else that
 * is done with a body.
 */
export function releasePieces(pieces: readonly Buffer[]): void {
  for (const { buffer } of pieces) {
    // Several can be parts of one.
    if (buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0);
  }
}

/**
 * Reads from a body that was kept in pieces as they came. Cheap where places are asked for in their order.
 * @returns the bytes from `start` to `end`, never a view of them; both lie in the body
 */
export function createPieceReader(
  pieces: readonly Uint8Array[],
): (start: number, end: number) => Buffer {
  let index = 0;
  /** Where the piece at `index` begins. */
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
