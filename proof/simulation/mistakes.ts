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

/** Changes of `store/failures.ts` that let a worker report the failures of all projects. */
export const OTHERS_FAILURES: Bug['replace'] = [
  ['AND p.owner = :worker', 'AND CAST(:worker AS text) IS NOT NULL'],
  ['owner.tokens.get(project) === project_token', "`${project} ${project_token}` !== ''"],
];

/** What stands for `fenced` in a commit, also if the project has another token by now. */
const UNFENCED = '(SELECT project_key FROM evalwatch.project WHERE id = $1) AS fenced';

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
    {
      what: 'an experiment finishes with the first listing that shows its end',
      file: 'domain/experiment.ts',
      replace: [
        ['complete && hadEnded && !moved && isFinishing(next)', 'complete && isFinishing(next)'],
      ],
      notice: /told a finish of .* that is none/,
    },
    {
      what: 'an unchanged listing finishes no experiment',
      file: 'monitor/poller.ts',
      replace: [['missing.length > 0 || this.#isFinishing(project, kind)', 'missing.length > 0']],
      notice: /finishes of .*: expected/,
    },
    {
      what: 'a process does not tell the finishes of one that was killed',
      file: 'notify/outbox.ts',
      replace: [
        ["['failed', 'completed', 'finished'] as const", "['failed', 'completed'] as const"],
      ],
      notice: /told .* instead of .*: experiments\.finished|not told of .*: experiments\.finished/,
    },
    {
      what: 'a message has the time of its attempt',
      file: 'notify/deliver.ts',
      replace: [
        [
          'await send(receiver, message, {',
          'await send(receiver, { ...message, timestamp: new Date(clock.now()).toISOString() }, {',
        ],
      ],
      notice: /came again with another content/,
    },
    {
      what: 'a receiver that fails is not tried again before a reload or a restart',
      file: 'notify/deliver.ts',
      replace: [
        ['clock.timeout(ms, resolve)', 'clock.timeout(isIdle ? ms : 2 ** 31 - 1, resolve)'],
      ],
      notice: /was not told of/,
    },
    {
      what: 'a message is given up after 24 minutes',
      file: 'notify/deliver.ts',
      replace: [['MAX_AGE_MS = 24 * 60 * 60_000', 'MAX_AGE_MS = 24 * 60_000']],
      notice: /was given up within hours/,
    },
  ],
  workers: [
    {
      what: 'a claim keeps the token',
      file: 'store/postgres/ownership/coordinator.ts',
      replace: [['SET owner = $1, token = gen_random_uuid()', 'SET owner = $1']],
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
      file: 'store/postgres/ownership/owned-projects.ts',
      replace: [['(!unknown && !isRepeated) || signal.aborted', 'true']],
      notice: /was not told|transitions of/,
    },
    {
      what: 'a commit that is repeated because its answer was lost counts finishes again',
      file: 'store/postgres/sql/poll-commit.ts',
      replace: [
        [
          'FROM fenced CROSS JOIN json_array_elements_text(',
          `FROM ${UNFENCED} CROSS JOIN json_array_elements_text(`,
        ],
        [
          'FROM fenced CROSS JOIN ROWS FROM (json_to_recordset($${',
          `FROM ${UNFENCED} CROSS JOIN ROWS FROM (json_to_recordset($\${`,
        ],
      ],
      notice: /finishes of .*: expected/,
    },
    {
      what: 'the finishes of a commit are stored in another order',
      file: 'store/postgres/sql/poll-commit.ts',
      replace: [['ORDER BY position\n', 'ORDER BY position DESC\n']],
      notice: /told, not stored: finish/,
    },
    {
      what: 'a settlement is counted twice',
      file: 'store/failures.ts',
      replace: [['count = stored.count + 1', 'count = stored.count + 2']],
      notice: /settled failures of/,
    },
    {
      what: 'a worker reports failures of projects that others own',
      file: 'store/failures.ts',
      replace: OTHERS_FAILURES,
      notice: /was told by|told after its end/,
    },
    {
      what: 'a lease begins anew with each beat',
      file: 'coordination/worker.ts',
      replace: [['    this.#isHeld();\n    const [until', '    this.#lose();\n    const [until']],
      notice: /although nothing has happened/,
    },
    {
      what: 'projects of a worker that died have an owner for ever',
      file: 'store/postgres/ownership/coordinator.ts',
      replace: [['(p.owner IS NULL OR p.owner NOT IN (${LIVE}))', '(p.owner IS NULL)']],
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
      what: 'a worker keeps more projects than its share',
      file: 'coordination/worker.ts',
      replace: [['Math.max(0, this.#polled.size - due)', '0']],
      notice: /more than its share/,
    },
    {
      what: 'a worker owns projects that it has not configured',
      file: 'coordination/worker.ts',
      replace: [
        [
          'if (isRemoved ? !hasPending : !this.#configured.has(project)) {',
          'if (isRemoved && !hasPending) {',
        ],
        [
          'else if (isRemoved) removed',
          'else if (isRemoved || !this.#configured.has(project)) removed',
        ],
      ],
      notice: /takes a failure of it/,
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
      file: 'store/postgres/ownership/owned-projects.ts',
      replace: [['(!unknown && !isRepeated) || signal.aborted', '!unknown && !isRepeated']],
      notice: /a stop did not end/,
    },
    {
      what: 'two workers tell the same',
      file: 'store/notifications.ts',
      replace: [
        [
          'AND kind = :kind AND token = :token RETURNING',
          'AND kind = :kind AND CAST(:token AS text) IS NOT NULL RETURNING',
        ],
      ],
      notice: /was told .* instead of/,
    },
    {
      what: 'the first failure to tell is that with the earliest time',
      file: 'store/notifications.ts',
      replace: [['ORDER BY ${number} LIMIT 1', 'ORDER BY t.at LIMIT 1']],
      notice: /was told .* instead of/,
    },
  ],
};
