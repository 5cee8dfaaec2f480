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
        'settlement: Settlement): Promise<void> {\n    await settle(failure, settlement);\n    emit(',
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
    notice: /is not polled for|was due after the clock was set back/,
  },
  {
    what: 'a new failure waits for the next check for failures',
    file: 'app/engine.ts',
    replace: [["if (kind === 'prompt' && to === 'FAILED') reporter.wake();", '']],
    notice: /the failure of .* is not reported/,
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
    replace: [['logged.set(keyOf(failure), { failure, settlement });', '']],
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
    what: 'a clock that is set back just before a run is due loses that run',
    file: 'schedule/setback.ts',
    replace: [
      ['reached: (moment = 0) => wallAt(Math.max(before.at, moment))', 'reached: () => now'],
    ],
    notice: /was due after the clock was set back/,
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
  {
    what: 'a failure whose line was written while the store failed is not settled by a stop',
    file: 'monitor/failure-reporter.ts',
    replace: [['      await settleLogged();\n', '']],
    notice: /was told by .* and not settled/,
  },
];

/** Directory of the model of the server: a mistake in a function is a mistake in the statement that it models. */
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
    replace: [['drop([...expected.keys()].filter(isLost))', 'drop([])']],
    notice: /is not polled for/,
  },
  {
    what: 'a poll is repeated after a reload has removed its project',
    file: 'app/engine.ts',
    replace: [
      [
        'const poll = () => pollConfigured(id, run, poller, inForce);',
        'const project = inForce.projects().get(id);\n      const poll = () => poller.poll(project, run);',
      ],
    ],
    notice: /tells the outcome of a poll of .*, a removed project/,
  },
  {
    what: 'a worker keeps more projects than its share',
    file: 'coordination/share.ts',
    replace: [['release([...foreign, ...kept.slice(due)]);', 'release(foreign);']],
    notice: /more than its share/,
  },
  {
    what: 'a worker that stops leaves its lease to expire',
    file: 'coordination/worker.ts',
    replace: [
      ['await withTimeout(coordinator.leave(id), timeoutMs, clock).catch(onFailure)', '{}'],
    ],
    notice: /has kept its lease/,
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
        'const row = pendingRow(id, foundAt, values[9]);\n',
        'const row = transition.get(id)?.at === foundAt ? failure.get(id) : undefined;\n',
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
    replace: [['attempt.unknown === true || ', '']],
    notice: /a reload failed, and/,
  },
  {
    what: 'projects that a failover lost are not configured again',
    file: 'coordination/worker.ts',
    replace: [['    restoration.check(answer, digest);\n', '']],
    notice: /is not polled for/,
  },
  {
    what: 'a removed project keeps its owner',
    file: `${MODEL}/workers.ts`,
    replace: [
      [
        '        setOwner(row, null);\n      }\n      return [{ epoch',
        '      }\n      return [{ epoch',
      ],
    ],
    notice: /which nobody has configured|is not polled for/,
  },
  {
    what: 'a poll of an earlier ownership is committed',
    file: 'monitor/poller.ts',
    replace: [
      [
        'newer than this reading.\n      if (states.get(project) !== state) return undefined;',
        'newer than this reading.',
      ],
    ],
    notice: /counts of|prompts of|transitions of|was not told|settled, not told/,
  },
  {
    what: 'a commit whose answer was lost is repeated under its epoch',
    file: `${MODEL}/polls.ts`,
    replace: [['if (mayCome) found.epoch = last.epoch += 1;', '']],
    notice: /was not told|transitions of/,
  },
  {
    what: 'a stop waits for a database that does not answer',
    file: 'store/postgres/commits.ts',
    replace: [['      if (signal.aborted) throw error;\n', '']],
    notice: /a stop did not end/,
  },
  {
    what: 'a stop leaves the timer of its releases',
    file: 'coordination/releases.ts',
    replace: [['      timer.cancel();\n', '']],
    notice: /timers are left/,
  },
  {
    what: 'a stop leaves the pause after a failed request for places',
    file: 'coordination/shared-rate.ts',
    replace: [['wake).unref();', 'wake);']],
    notice: /timers are left/,
  },
  {
    what: 'a worker reports a failure after the end of its lease',
    file: 'monitor/failure-reporter.ts',
    replace: [
      [
        'if (outcome === undefined || lease() !== heldLease) return;',
        'if (outcome === undefined) return;',
      ],
    ],
    notice: /was told by|told after its end/,
  },
  {
    what: 'a stop ends the lease before the reports of failures have ended',
    file: 'coordination/worker.ts',
    replace: [['await Promise.all([share.released(), work]);', 'await share.released();']],
    notice: /was told by|told after its end/,
  },
  {
    what: 'a project that was polled by a clock far ahead rests at its next owner',
    file: 'schedule/entries.ts',
    replace: [
      ['  if (isFarAhead && old?.isOwnedElsewhere === true) atOnce = true;\n', ''],
      ['isFarAhead ? now : now + Math.max(0, aheadMs)', 'now + Math.max(0, aheadMs)'],
    ],
    notice: /is not polled for|known as/,
  },
  {
    what: 'a place for a request stays in the future of a clock that was set back',
    file: `${MODEL}/workers.ts`,
    replace: [
      [
        'tables.rateNextUs <= latest ? Math.max(tables.rateNextUs, nowUs) : nowUs',
        'Math.max(tables.rateNextUs, nowUs)',
      ],
    ],
    notice: /is not polled for|known as/,
  },
  {
    what: 'leases of the dead hold again after the clock of the database was set back',
    file: 'store/postgres/ownership/lease-watch.ts',
    replace: [['isSame ? Math.min(before.until, until) : until', 'until']],
    notice: /is not polled for|known as/,
  },
  {
    what: 'a worker compares its projects with the database only if their number differs',
    file: 'coordination/share.ts',
    replace: [[' && recorded.epochs === epochs', '']],
    notice: /is not polled for/,
  },
  {
    what: 'a worker rests until its next regular beat after a failed release',
    file: 'coordination/worker.ts',
    replace: [["    if (state !== 'starting') heartbeat.schedule();\n", '']],
    notice: /has rested since a release/,
  },
  {
    what: 'statements take the time of the worker',
    file: '../proof/simulation/postgres/watched-server.ts',
    replace: [
      [
        'Math.round((START + kernel.now() + clockOffset()) * 1000)',
        'Math.round((clockOffset() + process.machine.clock.now()) * 1000)',
      ],
    ],
    notice: /requests of all workers|was told by|is not polled for|known as/,
  },
  {
    what: 'the first poll after a failover that lost commits takes its listing for known',
    file: `${MODEL}/polls.ts`,
    replace: [['        if (version !== null && found.version !== version) return [];\n', '']],
    notice: /overlooked|known as/,
  },
  {
    what: 'a commit is not fenced by the owner',
    file: `${MODEL}/polls.ts`,
    replace: [
      [
        'if (found?.epoch !== epoch || found.version !== version || found.owner !== worker) return [];',
        'if (found?.epoch !== epoch || found.version !== version) return [];',
      ],
    ],
    notice: /committed \w+, which/,
  },
  {
    what: 'the delay of a run is counted for each repetition',
    file: 'monitor/reading.ts',
    replace: [['      if (started.has(run)) return;\n', '']],
    notice: /was started twice by/,
  },
  {
    what: 'undocumented items of a poll whose commit was refused are told',
    file: 'monitor/poller.ts',
    replace: [
      ['    emitAnomalies(emit, project.id, reading.anomalies, state.anomalies);\n', ''],
      [
        'const outcome = await commit(',
        'emitAnomalies(emit, project.id, reading.anomalies, state.anomalies);\nconst outcome = await commit(',
      ],
    ],
    notice: /undocumented items twice/,
  },
  {
    what: 'a worker takes failures of projects that it has not configured',
    file: 'app/work-sharing.ts',
    replace: [
      ['      .filter(({ project, removed }) => removed || configured.has(project))\n', ''],
    ],
    notice: /takes a failure of it/,
  },
  {
    what: 'a lease ends by the wall clock of its worker',
    file: 'coordination/lease.ts',
    replace: [
      ['clock.monotonic() >= heldUntil', 'clock.now() >= heldUntil'],
      ['heldUntil = beat.lease.until', 'heldUntil = beat.lease.expiresAt'],
      ['heldUntil - clock.monotonic()', 'heldUntil - clock.now()'],
    ],
    notice: /which has no lease|was told by/,
  },
  {
    what: 'a poll whose commit was refused is not made again',
    file: 'app/work-sharing.ts',
    replace: [['const MAX_ATTEMPTS = 3;', 'const MAX_ATTEMPTS = 1;']],
    notice: /was not polled again/,
  },
  {
    what: 'a late postponement frees a failure that another worker has claimed',
    file: `${MODEL}/failures.ts`,
    replace: [['if (row.claimed_by !== null && row.claimed_by !== values[6]) return [];', '']],
    notice: /freed failure|was told by/,
  },
  {
    what: 'transitions that another worker made under the same epoch are told',
    file: `${MODEL}/polls.ts`,
    replace: [[' && row.at === at)', ')']],
    notice: /told twice|told, not stored|was not told|transitions of/,
  },
  {
    what: 'a commit whose answer was lost keeps its epoch after a failover that lost others',
    file: `${MODEL}/polls.ts`,
    replace: [['found.version <= version &&', 'found.version === version &&']],
    notice: /was not told|transitions of|prompts of|counts of/,
  },
  {
    what: 'a lease that no worker had read before the clock of the database was set back counts later',
    file: 'store/postgres/ownership/lease-watch.ts',
    replace: [
      [
        'const isPossible = row.remaining_ms <= LONGEST_REMAINDER_MINUTES * 60_000;',
        'const isPossible = true;',
      ],
    ],
    notice: /is not polled for|known as/,
  },
];
