import { visibleJson } from '../../domain/visible.ts';
import { writeCursor } from './cursor.ts';

/** An answer has so many bytes of rows at most, but always one row. */
const MAX_PAGE_BYTES = 1024 * 1024;

export interface RowSource<Row> {
  /** The rows that come after one, or after the cursor of the request if there is none yet: `count` at most. */
  read(last: Row | undefined, count: number): Promise<readonly Row[]>;
  /** Rows that are read at once; long ones a few at a time. */
  readonly atOnce: number;
  toFields(row: Row): object;
  /** Where the next page begins, for its cursor. */
  toPosition(row: Row): unknown;
}

/**
 * Reads a page of rows as the text of its answer, `{"data": [rows], "next_cursor": null or text}`. It ends with `limit`
 * rows, or before the row that would make it too large.
 */
export async function readPage<Row>(source: RowSource<Row>, limit: number): Promise<string> {
  const texts: string[] = [];
  let bytes = 0;
  let last: Row | undefined;
  for (;;) {
    // One row more than asked for tells whether there are more.
    const count = Math.min(source.atOnce, limit + 1 - texts.length);
    const rows = await source.read(last, count);
    for (const row of rows) {
      const text = visibleJson(JSON.stringify(source.toFields(row)));
      bytes += Buffer.byteLength(text);
      if (last !== undefined && (texts.length === limit || bytes > MAX_PAGE_BYTES)) {
        return answer(texts, writeCursor(source.toPosition(last)));
      }
      texts.push(text);
      last = row;
    }
    if (rows.length < count) return answer(texts, null);
  }
}

function answer(texts: readonly string[], cursor: string | null): string {
  return `{"data":[${texts.join(',')}],"next_cursor":${JSON.stringify(cursor)}}`;
}
