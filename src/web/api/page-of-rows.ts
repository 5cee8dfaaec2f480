import { visibleJson } from '../../domain/visible.ts';
import { writeCursor } from './cursor.ts';

/** Maximum size of the rows of an answer; one row is always sent. */
export const MAX_PAGE_BYTES = 1024 * 1024;

export interface RowSource<Row> {
  /** Reads up to `count` rows after `last`; after the cursor of the request if `last` is undefined. */
  read(last: Row | undefined, count: number): Promise<readonly Row[]>;
  /** Maximum number of rows in one read; small for long rows. */
  readonly maxPerRead: number;
  toFields(row: Row): object;
  /** Position after the row, for the cursor of the next page. */
  toPosition(row: Row): unknown;
}

/**
 * Reads a page of rows and returns the text of its answer, `{"data": [rows], "next_cursor": null or text}`. The page ends
 * after `limit` rows, or before the row that would exceed the maximum size.
 */
export async function readPage<Row>(source: RowSource<Row>, limit: number): Promise<string> {
  const texts: string[] = [];
  let bytes = 0;
  let last: Row | undefined;
  for (;;) {
    // One row more than requested shows whether there is a next page.
    const count = Math.min(source.maxPerRead, limit + 1 - texts.length);
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

/** Returns the text of an answer with these rows, each of them JSON. */
export function answer(texts: readonly string[], cursor: string | null): string {
  return `{"data":[${texts.join(',')}],"next_cursor":${JSON.stringify(cursor)}}`;
}
