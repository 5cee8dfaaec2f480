import type { Statement } from '../database.ts';

/** Selects the last numbers given to rows, perhaps by transactions that have not ended yet. */
export const EVENT_NUMBERS: Statement = {
  name: 'event_numbers',
  text: `SELECT t.last_value - (NOT t.is_called)::integer AS transition,
      s.last_value - (NOT s.is_called)::integer AS settlement,
      f.last_value - (NOT f.is_called)::integer AS finish
    FROM evalwatch.transition_transition_id_seq t CROSS JOIN evalwatch.settlement_settlement_id_seq s
    CROSS JOIN evalwatch.finish_finish_id_seq f`,
};

/** Selects the transactions that write these tables now. Each holds its lock from before it takes a number until its end. */
export const EVENT_WRITERS: Statement = {
  name: 'event_writers',
  text: `SELECT DISTINCT virtualtransaction AS writer FROM pg_locks
    WHERE relation IN ('evalwatch.transition'::regclass, 'evalwatch.settlement'::regclass, 'evalwatch.finish'::regclass)
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND mode = 'RowExclusiveLock' AND granted`,
};
