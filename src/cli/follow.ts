import { setTimeout as sleep } from 'node:timers/promises';
import type {
  EventPosition,
  RecordedEvents,
  RowQuery,
  StoreReader,
} from '../monitor/ports/store.ts';
import type { Context } from './command.ts';
import type { Options } from './options.ts';
import { type Format, toQuery, withReader } from './query.ts';
import { createTable, toJsonLine } from './table.ts';

/** Rows that a command prints as they are recorded. */
export interface Followed<Row extends object> {
  readonly format: Format<Row>;
  /** Reads the rows with which it begins, newest first. */
  readonly newest: (reader: StoreReader, query: RowQuery) => Promise<readonly Row[]>;
  /** The number by which rows follow each other. */
  readonly number: keyof EventPosition;
  /** Returns the rows, and the number of the last one. */
  readonly recorded: (
    events: RecordedEvents,
  ) => readonly [rows: readonly Row[], last: number | undefined];
}

/** A row of the API. Without an id of a prompt it belongs to none. */
interface FollowedRow {
  readonly transition_id: number;
  readonly project: string;
  readonly time: string;
  readonly experiment: string | null;
  readonly prompt_id?: string;
  readonly cause?: string | null;
}

const POLL_INTERVAL_MS = 1000;
const FIRST_ROWS = 10;
/** Maximum number of rows that are read at a time. */
const PAGE_SIZE = 5000;
const NEVER = Number.MAX_SAFE_INTEGER;

/**
 * Prints the newest rows, oldest first, and then each new one once, until a signal ends the process.
 * @throws {StoreError} also when the store is replaced
 */
export async function follow<Row extends FollowedRow>(
  { format, newest, number, recorded }: Followed<Row>,
  options: Options,
  context: Context,
): Promise<never> {
  const { stdout } = context;
  const table = createTable(format.columns, stdout);
  const print = async (rows: readonly Row[]) =>
    await stdout.write(options.json ? rows.map(toJsonLine).join('') : table(rows));
  return await withReader(options, context, async ({ reader }) => {
    const { limit = FIRST_ROWS, ...query } = toQuery(options, context);
    let after = (await eventsAfter(reader, number, NEVER)).end[number];
    const first = await newest(reader, { ...query, limit });
    await print(first.toReversed());
    // Some of them may have been recorded between the two queries.
    const printed = new Set(first.map((row) => row.transition_id));
    while (true) {
      const [rows, last = after] = recorded(await eventsAfter(reader, number, after));
      after = last;
      const wanted = rows.filter((row) => !printed.has(row.transition_id) && isWanted(row, query));
      if (wanted.length > 0) await print(wanted);
      if (rows.length < PAGE_SIZE) await sleep(POLL_INTERVAL_MS);
    }
  });
}

/** Reads rows of one kind in the order in which they become visible, which is not quite that of their numbers. */
function eventsAfter(reader: StoreReader, number: keyof EventPosition, after: number) {
  const none = { transition: NEVER, settlement: NEVER, finish: NEVER };
  return reader.events({ ...none, [number]: after }, PAGE_SIZE);
}

function isWanted(row: FollowedRow, query: RowQuery): boolean {
  const { project, experiment, promptId, cause, since } = query;
  const { prompt_id: prompt } = row;
  return (
    (project === undefined || row.project === project) &&
    (experiment === undefined || (prompt !== undefined && (row.experiment ?? '') === experiment)) &&
    (promptId === undefined || prompt === promptId) &&
    (cause === undefined || row.cause === cause) &&
    (since === undefined || Date.parse(row.time) >= since)
  );
}
