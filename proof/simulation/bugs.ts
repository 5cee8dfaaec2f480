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
    file: 'monitor/repeated-check.ts',
    replace: [['isStarted = false;\n      next?.cancel();', 'isStarted = false;']],
    notice: /timers are left/,
  },
  {
    what: 'the last run is repeated after the clock was set back',
    file: 'schedule/scheduler.ts',
    replace: [['setback.byMs < second - first ? second : first', 'false ? second : first']],
    notice: /was started twice by/,
  },
  {
    what: 'a reload that the store refuses half way has removed projects',
    file: 'app/configure.ts',
    replace: [
      ['      health = await loadHealth(added);\n', ''],
      [
        'configureProjects(await withKeptProjects(ids), clock.now());',
        'configureProjects(await withKeptProjects(ids), clock.now());\nhealth = await loadHealth(added);',
      ],
    ],
    notice: /a reload failed, and|is not polled|prompts of|counts of/,
  },
  {
    what: 'the ETag of the old service is sent to the new one',
    file: 'monitor/poller.ts',
    replace: [
      [
        'for (const state of states.values()) state.memory = new Map();',
        'for (const state of states.values()) state.memory.clear();',
      ],
    ],
    notice: /counts of|prompts of|transitions of/,
  },
];

/** Files of the model of the server: a mistake in a function there is one in the statement that it stands for. */
const MODEL = '../proof/simulation/model';

/** Mistakes that the simulation of workers finds. */
export const OF_WORKERS: readonly Bug[] = [
  {
    what: 'a commit is not fenced by the ownership',
    file: `${MODEL}/polls.ts`,
    replace: [
      [
        'if (found?.epoch !== epoch || found.version !== version || found.owner !== worker) return [];',
        'if (found?.version !== version) return [];',
      ],
    ],
    notice: /committed \w+, which/,
  },
  {
    what: 'a commit is not fenced by the version',
    file: `${MODEL}/polls.ts`,
    replace: [
      [
        'if (found?.epoch !== epoch || found.version !== version || found.owner !== worker) return [];',
        'if (found === undefined || found.epoch !== epoch || found.owner !== worker) return [];',
      ],
    ],
    notice: /counts of|prompts of|transitions of/,
  },
  {
    what: 'what is known of a listing outlives the ownership',
    file: 'monitor/poller.ts',
    replace: [
      [
        'states.set(project, newState(health));\n    },',
        'states.set(project, { ...newState(health), memory: stateOf(project).memory });\n    },',
      ],
      ['      states.delete(project);\n', ''],
    ],
    notice: /counts of|prompts of|transitions of/,
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
    what: 'a listing whose commit was refused counts as known',
    file: 'monitor/poller.ts',
    replace: [['        memory.clear();\n', '']],
    notice: /known as|prompts of|transitions of/,
  },
  {
    what: 'projects of a worker that died have an owner for ever',
    file: `${MODEL}/workers.ts`,
    replace: [['owner === null || !isLive(tables, owner, nowUs)', 'owner === null']],
    notice: /is not polled for|known as/,
  },
  {
    what: 'a worker keeps the projects that an earlier request for a lease has freed',
    file: 'coordination/share.ts',
    replace: [['drop(unrecorded)', 'drop([])']],
    notice: /is not polled for/,
  },
  {
    what: 'a lease ends by its timer alone',
    file: 'coordination/lease.ts',
    replace: [['if (heldUntil !== undefined && clock.monotonic() >= heldUntil) lose();', '']],
    notice: /which has no lease|told by/,
  },
  {
    what: 'two workers claim the same failure',
    file: `${MODEL}/failures.ts`,
    replace: [
      [
        'claimed_by === null || claimed_by === worker || !isLive(tables, claimed_by, nowUs)',
        'true',
      ],
    ],
    notice: /was told by|was settled twice|told after its end/,
  },
  {
    what: 'a failure is settled and counted twice',
    file: `${MODEL}/failures.ts`,
    replace: [
      [
        'if (row === undefined || row.settled_at !== null) return [];\n      const settlement',
        'if (row === undefined) return [];\n      const settlement',
      ],
    ],
    notice: /settled failures of|was settled twice/,
  },
  {
    what: 'a stop leaves the end of its lease',
    file: 'coordination/worker.ts',
    replace: [['      heartbeat.stop();\n      lease.close();\n', '      heartbeat.stop();\n']],
    notice: /timers are left/,
  },
  {
    what: 'a stop does not wait for the last beat',
    file: 'coordination/worker.ts',
    replace: [
      ['      // A running beat may begin another lease.\n      await heartbeat.idle();\n', ''],
    ],
    notice: /timers are left/,
  },
  {
    what: 'a reload whose answer was lost is not repeated',
    file: 'store/postgres/configure.ts',
    replace: [['        mayBeMade ||= unknown;\n', '']],
    notice: /a reload failed, and/,
  },
  {
    what: 'a removed project keeps its owner',
    file: `${MODEL}/workers.ts`,
    replace: [
      [
        '        setOwner(row, null);\n      }\n      return [];\n    },\n    unconf',
        '      }\n      return [];\n    },\n    unconf',
      ],
    ],
    notice: /which nobody has configured|is not polled for/,
  },
];
