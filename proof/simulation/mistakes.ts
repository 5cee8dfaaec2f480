import { copyWithBug } from '../bug.ts';
import type { Bug, Figures } from '../row.ts';
import { play } from './play.ts';
import type { Part } from './scenario.ts';

/** CPU time after which a search gives up, seconds. */
const MAX_SECONDS = 600;

/**
 * Plants the mistakes of a part, one after the other, and plays seeds until the rule that it is for finds it. Returns the seeds.
 * @throws {Error} if it is not found in time
 */
export async function searchMistakes(
  part: Part,
  firstSeed: number,
  print: (line: string) => void,
): Promise<Figures> {
  const figures: (readonly [string, string])[] = [];
  for (const mistake of MISTAKES[part]) {
    const found = await search(part, mistake, firstSeed);
    print(`${part}, ${mistake.what}: ${found}`);
    figures.push([`mistake: ${mistake.what}`, found]);
  }
  return figures;
}

async function search(part: Part, mistake: Bug, firstSeed: number): Promise<string> {
  await using copy = await copyWithBug(mistake);
  const others = new Set<string>();
  for await (const { seed, faults, cpuSeconds } of play(part, firstSeed, copy.source)) {
    const fault = faults.find((one) => mistake.notice.test(one));
    if (fault !== undefined)
      return `seed ${seed}, ${cpuSeconds.toFixed(0)} s: ${fault.slice(0, 160)}`;
    for (const other of faults) others.add(`seed ${seed}: ${other}`);
    if (cpuSeconds > MAX_SECONDS) break;
  }
  throw new Error(`not found: ${mistake.what}`, { cause: [...others].slice(0, 10).join('\n') });
}

/** One mistake for each rule of the oracle. A rule that another one always precedes is named together with it. */
export const MISTAKES: Readonly<Record<Part, readonly Bug[]>> = {
  daemon: [
    {
      what: 'a listing whose commit failed counts as known',
      file: 'monitor/poller.ts',
      replace: [
        [
          'markNotStored(listings);',
          'if (!(compared instanceof StoreError)) for (const [kind, listing] of compared.listings) listings.set(kind, listing);',
        ],
      ],
      // What is compared first depends on the listing.
      notice: /(?:transitions|prompts) of/,
    },
    {
      what: 'a failure is settled before its line is written',
      file: 'monitor/failure-reporter.ts',
      replace: [
        [
          'cause: causeOf(errorInfo).id };\n',
          'cause: causeOf(errorInfo).id };\n    await this.#settle(failure, settled);\n',
        ],
      ],
      notice: /is settled, not told/,
    },
    {
      what: 'a failure whose settlement could not be stored is told again',
      file: 'monitor/failure-reporter.ts',
      replace: [['this.#logged.set(key, { failure, settled });', '']],
      notice: /told twice by/,
    },
    {
      what: 'a failure whose line was written while the store failed is not settled by a stop',
      file: 'monitor/failure-reporter.ts',
      replace: [
        ['await this.#settleLogged().catch((error: unknown) => this.#pauseAfter(error));', ''],
      ],
      notice: /was told by .* and not settled/,
    },
    {
      what: 'a new failure waits for the next check for failures',
      file: 'app/engine.ts',
      replace: [["if (kind === 'prompt' && to === 'FAILED') reporter.wake();", '']],
      notice: /the failure of .* is not reported/,
    },
    {
      what: 'a run that was missed while no daemon ran is forgotten',
      file: 'schedule/scheduler.ts',
      replace: [[' || dueAfter(entry, lastPollAt) <= now;', ';']],
      notice: /was due .* ago and is not polled/,
    },
    {
      what: 'a clock that is set back just before a run is due loses that run',
      file: 'schedule/scheduler.ts',
      replace: [
        ['const reached = wallAt(Math.max(seen.at, last?.at ?? 0));', 'const reached = now.wall;'],
      ],
      notice: /was due after the clock was set back/,
    },
    {
      what: 'the last run is repeated after the clock was set back',
      file: 'schedule/scheduler.ts',
      replace: [['setBackBy < second - first ? second : first', 'false ? second : first']],
      notice: /was started twice by/,
    },
    {
      what: 'requests that are about to be sent do not count for the rate',
      file: 'client/gate.ts',
      replace: [['sentAt.length + reserved < maxInWindow', 'sentAt.length < maxInWindow']],
      notice: /requests in a second/,
    },
    {
      what: 'a stop leaves the timer of the failure reporter',
      file: 'monitor/failure-reporter.ts',
      replace: [
        ['this.#isStarted = false;\n    this.#nextCheck?.cancel();', 'this.#isStarted = false;'],
      ],
      notice: /timers are left/,
    },
    {
      what: 'a reload that the store refuses half way has removed projects',
      file: 'app/engine.ts',
      replace: [
        ['    const health = await this.#loadHealth(added);\n', ''],
        [
          'configureProjects(ids, clock.now());',
          'configureProjects(ids, clock.now());\nconst health = await this.#loadHealth(added);',
        ],
      ],
      notice: /a reload failed, and/,
    },
  ],
  workers: [
    {
      what: 'a commit is fenced by its version alone',
      file: 'store/postgres/sql/poll-commit.ts',
      replace: [
        [
          'WHERE id = $1 AND epoch = $2 AND version = $3 AND owner = $15',
          'WHERE id = $1 AND coalesce($2, epoch) >= 0 AND version = $3 AND $15::text IS NOT NULL',
        ],
      ],
      notice: /committed \w+, which/,
    },
    {
      what: 'the moves of a poll are stored in another order',
      file: 'store/postgres/sql/poll-commit.ts',
      replace: [['ORDER BY m.position\n', 'ORDER BY m.position DESC\n']],
      notice: /told, not stored/,
    },
    {
      what: 'a commit whose answer was lost counts as not made',
      file: 'store/postgres/commits.ts',
      replace: [['if (unknown) return await resolve(context, poll, after, started);', '']],
      notice: /was not told|transitions of/,
    },
    {
      what: 'a settlement is counted twice',
      file: 'store/postgres/sql/error-totals.ts',
      replace: [['count = stored.count + 1', 'count = stored.count + 2']],
      notice: /settled failures of/,
    },
    {
      what: 'two workers claim the same failure',
      file: 'store/postgres/sql/failures.ts',
      replace: [
        [
          '      AND (f.claimed_by IS NULL OR f.claimed_by = $4 OR f.claimed_by NOT IN (SELECT worker FROM live))\n',
          '',
        ],
      ],
      notice: /was told by|told after its end/,
    },
    {
      what: 'a late postponement frees a failure that another worker has claimed',
      file: 'store/postgres/sql/failures.ts',
      replace: [[' AND (f.claimed_by IS NULL OR f.claimed_by = $7)', ' AND $7::text IS NOT NULL']],
      notice: /freed failure/,
    },
    {
      what: 'a lease is renewed only while most of it is left',
      file: 'store/postgres/ownership/coordinator.ts',
      replace: [
        [
          'WHERE worker = $1 AND expires_at > now() RETURNING',
          "WHERE worker = $1 AND expires_at > now() + $2 * interval '0.9 ms' RETURNING",
        ],
      ],
      notice: /although nothing has happened/,
    },
    {
      what: 'projects of a worker that died have an owner for ever',
      file: 'store/postgres/ownership/coordinator.ts',
      replace: [
        [
          '(p.owner IS NULL OR p.owner NOT IN (SELECT worker FROM live)) AND p.removed_at',
          'p.owner IS NULL AND p.removed_at',
        ],
      ],
      notice: /is not polled for/,
    },
    {
      what: 'places for requests begin at once',
      file: 'store/postgres/ownership/coordinator.ts',
      replace: [['THEN greatest(next_at, time) ELSE', 'THEN time ELSE']],
      notice: /requests of all workers/,
    },
    {
      what: 'a worker takes a listing for known whose commit failed',
      file: 'monitor/poller.ts',
      replace: [
        [
          'markNotStored(listings);',
          'if (!(compared instanceof StoreError)) for (const [kind, listing] of compared.listings) listings.set(kind, listing);',
        ],
      ],
      notice: /overlooked/,
    },
    {
      what: 'a lease ends by the wall clock of its worker',
      file: 'coordination/lease.ts',
      replace: [
        ['clock.monotonic() >= heldUntil', 'clock.now() >= heldUntil'],
        ['heldUntil = beat.lease.until', 'heldUntil = beat.lease.expiresAt'],
        ['heldUntil - clock.monotonic()', 'heldUntil - clock.now()'],
      ],
      notice: /which has no lease/,
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
      what: 'a worker rests until its next regular beat after a failed release',
      file: 'coordination/worker.ts',
      replace: [["    if (state !== 'starting') heartbeat.schedule();\n", '']],
      notice: /has rested since a release/,
    },
    {
      what: 'a worker keeps more projects than its share',
      file: 'coordination/share.ts',
      replace: [['release([...foreign, ...kept.slice(due)]);', 'release(foreign);']],
      notice: /more than its share/,
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
      what: 'a poll whose commit was refused is not made again',
      file: 'app/work-sharing.ts',
      replace: [['const MAX_ATTEMPTS = 3;', 'const MAX_ATTEMPTS = 1;']],
      notice: /was not polled again/,
    },
    {
      what: 'undocumented items of a poll whose commit was refused are told',
      file: 'monitor/poller.ts',
      replace: [
        ['    this.#emitAnomalies(id, found.anomalies, memory);\n', ''],
        [
          'const outcome = await this.#commit(',
          'this.#emitAnomalies(id, found.anomalies, memory);\nconst outcome = await this.#commit(',
        ],
      ],
      notice: /undocumented items twice/,
    },
    {
      what: 'a poll is repeated after a reload has removed its project',
      file: 'app/engine.ts',
      replace: [
        [
          'const poll = async () => {\n      const project = this.#projects.get(id);',
          'const project = this.#projects.get(id);\n      const poll = async () => {',
        ],
      ],
      notice: /a removed project/,
    },
    {
      what: 'a stop waits for a database that does not answer',
      file: 'store/postgres/commits.ts',
      replace: [['      if (signal.aborted) throw error;\n', '']],
      notice: /a stop did not end/,
    },
  ],
};
