import type { Bug } from '../row.ts';

/** Mistakes that the simulation of a daemon finds. */
export const OF_DAEMON: readonly Bug[] = [
  {
    what: 'a poll is told before its transaction is committed',
    file: 'store/sqlite/sql/transactions.ts',
    replace: [
      [
        'if (place.begins) begin.run();',
        'if (db.inTransaction && place.begins) commit.run();\nif (place.begins) begin.run();',
      ],
      ['if (place.ends) commit.run();', ''],
    ],
    notice: /told, not stored|told twice|(?:transitions|prompts) of/,
  },
  {
    what: 'a failure is settled before its line is written',
    file: 'monitor/failure-reporter.ts',
    replace: [
      [
        'settlement: Settlement): Promise<void> {\n    emit(',
        'settlement: Settlement): Promise<void> {\n    await settle(failure.transitionId, settlement);\n    emit(',
      ],
    ],
    notice: /is settled, not told/,
  },
  {
    what: 'a listing whose commit failed counts as known',
    file: 'monitor/poller.ts',
    replace: [
      [
        'markNotStored(memory);',
        'if (!(compared instanceof StoreError)) updateMemory(memory, compared.answers, clock);',
      ],
    ],
    notice: /transitions of|prompts of/,
  },
  {
    what: 'a run that was missed while no daemon ran is forgotten',
    file: 'schedule/entries.ts',
    replace: [['atOnce = isMissed();', 'atOnce = lastPollAt === undefined;']],
    notice: /was due .* ago and is not polled/,
  },
  {
    what: 'a clock that was set back goes unnoticed',
    file: 'schedule/setback.ts',
    replace: [['if (byMs <= MAX_DRIFT_MS) return undefined;', 'if (byMs !== 0) return undefined;']],
    notice: /is not polled for/,
  },
  {
    what: 'requests that are about to be sent do not count for the rate',
    file: 'evaluation-api/fairness/rate-limit.ts',
    replace: [['sentAt.length + reserved < maxInWindow', 'sentAt.length < maxInWindow']],
    notice: /requests in a second/,
  },
  {
    what: 'a failure whose settlement could not be stored is told again',
    file: 'monitor/failure-reporter.ts',
    replace: [['logged.set(failure.transitionId, settlement);', '']],
    notice: /told twice by/,
  },
  {
    what: 'a stop leaves the timer of the failure reporter',
    file: 'monitor/failure-reporter.ts',
    replace: [['timer?.cancel();', '']],
    notice: /timers are left/,
  },
];

/** The server's side is real, so these mistakes are in the statements and in what the workers make of the answers. */
export const OF_WORKERS: readonly Bug[] = [
  {
    what: 'a commit is not fenced by the ownership',
    file: 'store/postgres/sql/poll-commit.ts',
    replace: [
      [
        'WHERE id = $1 AND epoch = $2 AND version = $3 AND owner = $15',
        'WHERE id = $1 AND (epoch = $2 OR true) AND version = $3 AND (owner = $15 OR true)',
      ],
    ],
    notice: /committed \w+, which/,
  },
  {
    what: 'a commit whose answer was lost counts as not made',
    file: 'store/postgres/commits.ts',
    replace: [['if (unknown) return await resolve(context, poll, after, started);', '']],
    notice: /was not told|transitions of/,
  },
  {
    what: 'a commit whose answer was lost counts as made',
    file: 'store/postgres/commits.ts',
    replace: [
      [
        'if (unknown) return await resolve(context, poll, after, started);',
        'if (unknown) return succeeded(poll, { transition_ids: null }, started);',
      ],
    ],
    notice: /told, not stored|told twice|transitions of/,
  },
  {
    what: 'projects of a worker that died have an owner for ever',
    file: 'store/postgres/ownership/coordinator.ts',
    replace: [['(p.owner IS NULL OR p.owner NOT IN (SELECT worker FROM live))', 'p.owner IS NULL']],
    notice: /is not polled for|known as/,
  },
];
