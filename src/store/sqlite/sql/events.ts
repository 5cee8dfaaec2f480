import type { EventPosition, RecordedEvents } from '../../../monitor/ports/store.ts';
import { readEvents } from '../../reads.ts';
import type { Db } from '../../sql.ts';

/** `StoreReader.events`. Commits follow each other, so all rows up to the last number are there. */
export async function readEventsToEnd(
  db: Db,
  after: EventPosition,
  limit: number,
): Promise<RecordedEvents> {
  const numbers = await db.read<{ readonly name: string; readonly seq: number }>(
    '',
    'SELECT name, seq FROM sqlite_sequence',
  );
  const last = (table: string) => numbers.find(({ name }) => name === table)?.seq ?? 0;
  const end = { transition: last('transition'), settlement: last('settlement') };
  return { ...(await readEvents(db, after, end, limit)), end };
}
