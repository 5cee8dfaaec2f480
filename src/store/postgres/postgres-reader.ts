import { StoreError } from '../../monitor/errors.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import type { EventPosition, RecordedEvents, StoreReader } from '../../monitor/ports/store.ts';
import { Reads } from '../reads.ts';
import { type Database, PostgresDatabase } from './database.ts';
import { assertReadable } from './sql/migrate.ts';
import { EVENT_NUMBERS, EVENT_WRITERS } from './sql/events.ts';
import { createPostgresDb } from './sql/texts.ts';
import { readUrl } from './url.ts';

/** Time limit of a statement, ms: an export reads every row. */
const TIMEOUT_MS = 60_000;
/** Interval at which the writers of events are read, ms, and the maximum number of times. */
const CHECK_EVERY_MS = 20;
const MAX_CHECKS = 100;

/**
 * Opens the store for reading, beside workers or without any.
 * @throws {StoreError} also if there is no store yet, or its schema version is another
 */
export async function openPostgresReader(options: {
  readonly url: string;
  readonly clock: Clock;
}): Promise<StoreReader> {
  const { url, clock } = options;
  const settings = await readUrl(url);
  const database = new PostgresDatabase({ settings, connections: 2, timeoutMs: TIMEOUT_MS, clock });
  try {
    await assertReadable(database);
  } catch (error) {
    await database.close();
    throw error;
  }
  return new PostgresReader(database, clock);
}

/** Reads that need no ownership. */
export class PostgresReader extends Reads implements StoreReader {
  readonly #database: Pick<Database, 'query' | 'close'>;
  readonly #clock: Pick<Clock, 'sleep'>;
  /** Events up to here are complete. */
  #end: EventPosition | undefined;

  constructor(database: Pick<Database, 'query' | 'close'>, clock: Pick<Clock, 'sleep'>) {
    super(createPostgresDb((...asked) => database.query(...asked)));
    this.#database = database;
    this.#clock = clock;
  }

  /**
   * A row gets its number before its commit, so a higher number can become visible first; a reader that continued after it would
   * miss the lower one. Nothing is therefore read beyond the numbers that had been given when every writer of that time has
   * ended.
   */
  async events(after: EventPosition, limit: number): Promise<RecordedEvents> {
    const given = await this.#findEnd();
    const last = later(this.#end, START);
    return {
      ...(await this.readEvents(after, last, limit)),
      // The position of the reader may be ahead: another process gave it.
      end: later(last, earlier(after, given)),
    };
  }

  /** Resolves to the numbers given out so far. */
  async #findEnd(): Promise<EventPosition> {
    const [given = START] = await this.#database.query<EventPosition>(EVENT_NUMBERS);
    let left = await this.#writers();
    for (let check = 0; left.size > 0 && check < MAX_CHECKS; check += 1) {
      await this.#clock.sleep(CHECK_EVERY_MS);
      left = left.intersection(await this.#writers());
    }
    if (left.size === 0) this.#end = later(this.#end, given);
    else if (this.#end === undefined) {
      throw new StoreError(
        'busy',
        'a commit to the store hangs, so the end of the events is unknown',
      );
    }
    return given;
  }

  async #writers(): Promise<ReadonlySet<string>> {
    const rows = await this.#database.query<{ readonly writer: string }>(EVENT_WRITERS);
    return new Set(rows.map(({ writer }) => writer));
  }

  async close(): Promise<void> {
    await this.#database.close();
  }
}

/** The position before the first event. */
const START: EventPosition = { transition: 0, settlement: 0, finish: 0 };

function later(one: EventPosition | undefined, other: EventPosition): EventPosition {
  return {
    transition: Math.max(one?.transition ?? 0, other.transition),
    settlement: Math.max(one?.settlement ?? 0, other.settlement),
    finish: Math.max(one?.finish ?? 0, other.finish),
  };
}

function earlier(one: EventPosition, other: EventPosition): EventPosition {
  return {
    transition: Math.min(one.transition, other.transition),
    settlement: Math.min(one.settlement, other.settlement),
    finish: Math.min(one.finish, other.finish),
  };
}
