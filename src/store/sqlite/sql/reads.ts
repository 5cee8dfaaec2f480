import type { EventPosition, RecordedEvents } from '../../../monitor/ports/store.ts';
import { Reads } from '../../reads.ts';
import type { Parameters } from '../../sql.ts';
import type { Connection } from '../connection.ts';
import { bindable, createPrepare } from './changes.ts';

/** The reading methods of a SQLite store. */
export class SqliteReads extends Reads {
  /** Commits follow each other, so all rows up to the last number are there. */
  async events(after: EventPosition, limit: number): Promise<RecordedEvents> {
    const numbers = await this.db.read<{ readonly name: string; readonly seq: number }>(
      '',
      'SELECT name, seq FROM sqlite_sequence',
    );
    const last = (table: string) => numbers.find(({ name }) => name === table)?.seq ?? 0;
    const end = {
      transition: last('transition'),
      settlement: last('settlement'),
      finish: last('finish'),
    };
    return { ...(await this.readEvents(after, end, limit)), end };
  }
}

/** Creates the function that answers the texts for both engines (`Db.read`). */
export function createSelect(
  db: Connection,
): (text: string, parameters: Parameters) => readonly unknown[] {
  const prepare = createPrepare(db);
  return (text, parameters) => prepare(text).all(bindable(parameters));
}
