import { HTTPException } from 'hono/http-exception';
import type { z } from 'zod';
import { ownTurn } from '../../domain/turns.ts';
import { visibleJson } from '../../domain/visible.ts';
import type { CauseList } from '../../monitor/ports/store.ts';
import { causeFields, otherCausesFields } from '../../rows/fields.ts';

/** Maximum size of the rows of an answer; one row is always sent. */
const MAX_PAGE_BYTES = 1024 * 1024;
/** Causes that are made into text in one turn of the event loop: each reads a message of up to 8 kB. */
const CAUSES_PER_TURN = 10;

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
    await ownTurn();
    for (const row of rows) {
      const text = toText(source.toFields(row));
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

/**
 * Returns the text of the answer, `{"data": [rows], "next_cursor": null}`. Causes that would exceed the maximum size are
 * counted with those that the limit has left out.
 */
export async function causesAnswer({ causes, others }: CauseList): Promise<string> {
  const texts: string[] = [];
  let bytes = 0;
  for (const [index, cause] of causes.entries()) {
    if (index % CAUSES_PER_TURN === CAUSES_PER_TURN - 1) await ownTurn();
    const text = toText(causeFields(cause));
    bytes += Buffer.byteLength(text);
    if (texts.length > 0 && bytes > MAX_PAGE_BYTES) break;
    texts.push(text);
  }
  const cut = causes.slice(texts.length);
  const count = cut.reduce((sum, cause) => sum + cause.count, others.count);
  if (count > 0) texts.push(toText(otherCausesFields(count)));
  return answer(texts, null);
}

function answer(texts: readonly string[], cursor: string | null): string {
  return `{"data":[${texts.join(',')}],"next_cursor":${JSON.stringify(cursor)}}`;
}

function toText(fields: object): string {
  return visibleJson(JSON.stringify(fields));
}

/** Encodes the position after a page as text for a URL. */
function writeCursor(position: unknown): string {
  return Buffer.from(JSON.stringify(position)).toString('base64url');
}

/** Returns the position in a cursor; undefined without one. @throws {HTTPException} if it is not a cursor of this schema */
export function readCursor<Position>(
  cursor: string | undefined,
  schema: z.ZodType<Position>,
): Position | undefined {
  if (cursor === undefined) return undefined;
  try {
    return schema.parse(JSON.parse(Buffer.from(cursor, 'base64url').toString()));
  } catch {
    const message = 'cursor must be the next_cursor of an answer to the same path';
    throw new HTTPException(400, { message });
  }
}
