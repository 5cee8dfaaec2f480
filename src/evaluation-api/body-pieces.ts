/**
 * Gives the memory of pieces back at once: nobody may look at them any more, nor write to them. Otherwise they wait for a
 * collection of the whole heap, and call for one every 64 MB, which costs more than all else that is done with a body.
 */
export function releasePieces(pieces: readonly Buffer[]): void {
  for (const { buffer, length } of pieces) {
    // Node lets small ones share memory, also with buffers that are nothing to us.
    if (length < Buffer.poolSize / 2) continue;
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
