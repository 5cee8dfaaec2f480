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
