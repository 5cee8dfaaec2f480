import { StoreError } from '../../../monitor/errors.ts';
import type { Clock } from '../../../monitor/ports/clock.ts';
import type { EventPosition, RecordedEvents } from '../../../monitor/ports/store.ts';
import {
  type FailureColumns,
  toFailureRow,
  toTransitionRow,
  type TransitionColumns,
} from '../../rows.ts';
import type { Database, Statement } from '../database.ts';
import { FAILURE_COLUMNS, TRANSITION_COLUMNS } from './row-queries.ts';

/** Interval at which the writers are read, ms, and the maximum number of times. */
const CHECK_EVERY_MS = 20;
const MAX_CHECKS = 100;

/** Selects the last numbers given to rows, perhaps by transactions that have not ended yet. */
const GIVEN: Statement = {
  name: 'event_numbers',
  text: `SELECT t.last_value - (NOT t.is_called)::integer AS transition,
      s.last_value - (NOT s.is_called)::integer AS settlement
    FROM evalwatch.transition_transition_id_seq t CROSS JOIN evalwatch.settlement_settlement_id_seq s`,
};

/** Selects the transactions that write these tables now. Each holds its lock from before it takes a number until its end. */
const WRITERS: Statement = {
  name: 'event_writers',
  text: `SELECT DISTINCT virtualtransaction AS writer FROM pg_locks
    WHERE relation IN ('evalwatch.transition'::regclass, 'evalwatch.settlement'::regclass)
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND mode = 'RowExclusiveLock' AND granted`,
};

const TRANSITIONS: Statement = {
  name: 'event_transitions',
  text: `SELECT ${TRANSITION_COLUMNS}
    FROM evalwatch.transition t JOIN evalwatch.project p ON p.project_key = t.project_key
    WHERE t.transition_id > $1 AND t.transition_id <= $3 ORDER BY t.transition_id LIMIT $2`,
};

const SETTLED: Statement = {
  name: 'event_settlements',
  text: `SELECT s.settlement_id, ${FAILURE_COLUMNS}
    FROM evalwatch.settlement s
    JOIN evalwatch.failure f ON f.transition_id = s.transition_id
    JOIN evalwatch.transition t ON t.transition_id = f.transition_id
    JOIN evalwatch.project p ON p.project_key = t.project_key
    WHERE s.settlement_id > $1 AND s.settlement_id <= $3 ORDER BY s.settlement_id LIMIT $2`,
};

/**
 * Creates `StoreReader.events`. A row gets its number before its commit, so a higher number can become visible first; a reader
 * that continued after it would miss the lower one. Nothing is therefore read beyond the numbers that had been given when
 * every writer of that time has ended.
 */
export function createEventQuery(
  database: Pick<Database, 'query'>,
  clock: Pick<Clock, 'sleep'>,
): (after: EventPosition, limit: number) => Promise<RecordedEvents> {
  let end: EventPosition | undefined;

  async function writers(): Promise<ReadonlySet<string>> {
    const rows = await database.query<{ readonly writer: string }>(WRITERS);
    return new Set(rows.map(({ writer }) => writer));
  }

  /** Resolves with the numbers given out so far. */
  async function findEnd(): Promise<EventPosition> {
    const [given = { transition: 0, settlement: 0 }] = await database.query<EventPosition>(GIVEN);
    let left = await writers();
    for (let check = 0; left.size > 0 && check < MAX_CHECKS; check += 1) {
      await clock.sleep(CHECK_EVERY_MS);
      left = left.intersection(await writers());
    }
    if (left.size === 0) end = later(end, given);
    else if (end === undefined) {
      throw new StoreError(
        'busy',
        'a commit to the store hangs, so the end of the events is unknown',
      );
    }
    return given;
  }

  return async (after, limit) => {
    const given = await findEnd();
    const last = later(end, { transition: 0, settlement: 0 });
    const [transitions, failures] = await Promise.all([
      database.query<TransitionColumns>(TRANSITIONS, [after.transition, limit, last.transition]),
      database.query<FailureColumns & { readonly settlement_id: number }>(SETTLED, [
        after.settlement,
        limit,
        last.settlement,
      ]),
    ]);
    return {
      transitions: transitions.map(toTransitionRow),
      settled: failures.map((row) => ({ ...toFailureRow(row), settlementId: row.settlement_id })),
      // The position of the reader may be ahead: another process gave it.
      end: later(last, earlier(after, given)),
    };
  };
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
