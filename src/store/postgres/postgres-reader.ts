import type { DurationCount } from '../../domain/limits.ts';
import { StoreError } from '../../monitor/errors.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import {
  type CauseList,
  type CauseQuery,
  type EventPosition,
  type FailureCount,
  type FailureCountQuery,
  type FailureRow,
  MAX_GROUPED_FAILURES,
  type MoveCount,
  type MoveHistory,
  type MoveQuery,
  type ProjectState,
  type RecordedEvents,
  type RowQuery,
  type StateDurations,
  type StatusRow,
  type StoreReader,
  type StoreSnapshot,
  type TransitionRow,
} from '../../monitor/ports/store.ts';
import {
  type CauseColumns,
  type FailureColumns,
  type StatusColumns,
  toCauseList,
  toFailureRow,
  toStatusRow,
  toTransitionRow,
  type TransitionColumns,
} from '../rows.ts';
import { type Database, PostgresDatabase } from './database.ts';
import { assertReadable } from './sql/migrate.ts';
import * as sql from './sql/reads.ts';
import { PROJECT_SNAPSHOT, SNAPSHOT, type SnapshotRow, toSnapshot } from './sql/snapshot.ts';
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
export class PostgresReader implements StoreReader {
  readonly #database: Pick<Database, 'query' | 'close'>;
  readonly #clock: Pick<Clock, 'sleep'>;
  /** Events up to here are complete. */
  #end: EventPosition | undefined;

  constructor(database: Pick<Database, 'query' | 'close'>, clock: Pick<Clock, 'sleep'>) {
    this.#database = database;
    this.#clock = clock;
  }

  async projects(): Promise<readonly string[]> {
    const rows = await this.#database.query<{ readonly id: string }>(sql.PROJECTS);
    return rows.map(({ id }) => id);
  }

  async snapshot(project?: string): Promise<StoreSnapshot> {
    const [row] =
      project === undefined
        ? await this.#database.query<SnapshotRow>(SNAPSHOT)
        : await this.#database.query<SnapshotRow>(PROJECT_SNAPSHOT, [project]);
    return toSnapshot(row ?? { projects: null, count: 0, oldest_at: null });
  }

  async statuses(query: RowQuery): Promise<readonly StatusRow[]> {
    const { statement, values } = sql.statusesQuery(query);
    return (await this.#database.query<StatusColumns>(statement, values)).map(toStatusRow);
  }

  async transitions(query: RowQuery): Promise<readonly TransitionRow[]> {
    const { statement, values } = sql.transitionsQuery(query);
    return (await this.#database.query<TransitionColumns>(statement, values)).map(toTransitionRow);
  }

  async failures(query: RowQuery): Promise<readonly FailureRow[]> {
    const { statement, values } = sql.failuresQuery(query);
    return (await this.#database.query<FailureColumns>(statement, values)).map(toFailureRow);
  }

  async causes({ project, since, limit, maxFailures }: CauseQuery): Promise<CauseList> {
    const values = [project, since, limit, maxFailures ?? MAX_GROUPED_FAILURES];
    return toCauseList(await this.#database.query<CauseColumns>(sql.CAUSES, values));
  }

  async moves({ project, since, spanMs, limit }: MoveQuery): Promise<MoveHistory> {
    const asked = [project, since, limit];
    const [leftOut] = await this.#database.query<{ readonly at: number }>(
      sql.FIRST_LEFT_OUT,
      asked,
    );
    const after = leftOut?.at ?? since - 1;
    const moves = await this.#database.query<MoveCount>(sql.MOVES, [project, since, spanMs, after]);
    return { since: leftOut?.at ?? since, moves };
  }

  async failureCounts(query: FailureCountQuery): Promise<readonly FailureCount[]> {
    const { project, since, limitPerProject } = query;
    return await this.#database.query(sql.FAILURE_COUNTS, [project, since, limitPerProject]);
  }

  async durations(
    states: readonly ProjectState[],
    firstDay: number,
  ): Promise<readonly StateDurations[]> {
    const asked = states.map(({ project, status }, position) => ({ position, project, status }));
    const rows = await this.#database.query<DurationCount & { readonly position: number }>(
      sql.DURATIONS,
      [JSON.stringify(asked), firstDay],
    );
    const counts = Map.groupBy(rows, ({ position }) => position);
    return states.map((state, position) => ({ ...state, counts: counts.get(position) ?? [] }));
  }

  /**
   * A row gets its number before its commit, so a higher number can become visible first; a reader that continued after it would
   * miss the lower one. Nothing is therefore read beyond the numbers that had been given when every writer of that time has
   * ended.
   */
  async events(after: EventPosition, limit: number): Promise<RecordedEvents> {
    const given = await this.#findEnd();
    const last = later(this.#end, { transition: 0, settlement: 0 });
    const [transitions, failures] = await Promise.all([
      this.#database.query<TransitionColumns>(sql.EVENT_TRANSITIONS, [
        after.transition,
        limit,
        last.transition,
      ]),
      this.#database.query<FailureColumns & { readonly settlement_id: number }>(
        sql.EVENT_SETTLEMENTS,
        [after.settlement, limit, last.settlement],
      ),
    ]);
    return {
      transitions: transitions.map(toTransitionRow),
      settled: failures.map((row) => ({ ...toFailureRow(row), settlementId: row.settlement_id })),
      // The position of the reader may be ahead: another process gave it.
      end: later(last, earlier(after, given)),
    };
  }

  /** Resolves to the numbers given out so far. */
  async #findEnd(): Promise<EventPosition> {
    const [given = { transition: 0, settlement: 0 }] = await this.#database.query<EventPosition>(
      sql.EVENT_NUMBERS,
    );
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
    const rows = await this.#database.query<{ readonly writer: string }>(sql.EVENT_WRITERS);
    return new Set(rows.map(({ writer }) => writer));
  }

  async close(): Promise<void> {
    await this.#database.close();
  }
}

function later(one: EventPosition | undefined, other: EventPosition): EventPosition {
  return {
    transition: Math.max(one?.transition ?? 0, other.transition),
    settlement: Math.max(one?.settlement ?? 0, other.settlement),
  };
}

function earlier(one: EventPosition, other: EventPosition): EventPosition {
  return {
    transition: Math.min(one.transition, other.transition),
    settlement: Math.min(one.settlement, other.settlement),
  };
}
