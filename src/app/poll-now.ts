import { limitConcurrency } from '../concurrency/limit-concurrency.ts';
import { quoteId } from '../domain/suggest.ts';
import { unlessStoreFails } from '../monitor/errors.ts';
import type { FinishedPoll } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { PollNow, PollNowResult } from '../web/content.ts';
import type { Engine } from './engine.ts';
import { endProcess } from './process.ts';
import type { Scheduling } from './scheduling.ts';

/** Maximum time that an answer waits for its polls, ms: shorter than the web server keeps a connection for an answer. */
const MAX_WAIT_MS = 10_000;
/** Maximum number of single projects that are polled on request at the same time, so that requests cannot crowd out the schedule. */
const MAX_SINGLE_POLLS = 8;

/**
 * Creates the function that polls on request (docs/specification.md#poll-now).
 * @param maxWaitMs maximum time that an answer waits
 */
export function createPollNow(
  engine: Engine,
  scheduling: Scheduling,
  clock: Clock,
  maxWaitMs = MAX_WAIT_MS,
): PollNow {
  let singlePolls = 0;
  let isPollingAll = false;

  async function pollOne(id: string): Promise<PollNowResult> {
    const name = `project ${quoteId(id)}`;
    if (!engine.projects().has(id)) {
      return { refusal: 'unknown', error: `${name} is not in the configuration` };
    }
    if (!engine.mayPoll(id)) {
      const owner = await unlessStoreFails(async () => await engine.worker?.ownerOf(id));
      const who = owner === undefined ? 'not polled by this worker' : `polled by worker ${owner}`;
      return { refusal: 'elsewhere', error: `${name} is ${who}: send the request to its worker` };
    }
    const running = { refusal: 'running', error: `a poll of ${name} is already running` } as const;
    if (scheduling.isPolling(id)) return running;
    if (singlePolls >= MAX_SINGLE_POLLS) {
      const error = `${MAX_SINGLE_POLLS} projects are already polled on request: try again`;
      return { refusal: 'busy', error };
    }
    singlePolls += 1;
    const polling = scheduling.pollNow(id).finally(() => {
      singlePolls -= 1;
    });
    const result = await answerOf([polling]);
    if (result.pending > 0 || result.polled.length > 0) return result;
    const error = `${name} was not polled: another worker took it over, a reload removed it, or evalwatch is stopping`;
    return { refusal: 'elsewhere', error };
  }

  async function pollAll(): Promise<PollNowResult> {
    if (isPollingAll) return { refusal: 'running', error: 'all projects are already being polled' };
    const owned = [...engine.projects().keys()].filter((id) => engine.mayPoll(id));
    if (owned.length === 0) {
      return { refusal: 'elsewhere', error: 'this worker polls none of the projects' };
    }
    isPollingAll = true;
    const requestedAt = clock.now();
    // The other half of the slots is left to the schedule.
    const { maxConcurrency } = engine.config().service;
    const limited = limitConcurrency(Math.max(1, Math.floor(maxConcurrency / 2)));
    const polls = owned.map((id) =>
      limited(async () => {
        // A poll of its schedule may have come first.
        const lastPollAt = engine.health(id)?.lastPollAt ?? -Infinity;
        if (lastPollAt > requestedAt || scheduling.isPolling(id)) return undefined;
        return await scheduling.pollNow(id);
      }),
    );
    const reset = async () => {
      await Promise.allSettled(polls);
      isPollingAll = false;
    };
    void reset();
    return await answerOf(polls);
  }

  /** Waits for the polls, but not longer than an answer may take. A poll that is undefined was not made. */
  async function answerOf(polls: readonly Promise<FinishedPoll | undefined>[]) {
    const polled: FinishedPoll[] = [];
    let pending = polls.length;
    const ended = Promise.all(
      polls.map(async (poll) => {
        const finished = await poll;
        pending -= 1;
        if (finished !== undefined) polled.push(finished);
      }),
    );
    // An error is a bug, as in a poll of the schedule; the answer may be gone by then.
    ended.catch(endProcess);
    const { promise: timeout, resolve } = Promise.withResolvers<void>();
    const timer = clock.timeout(maxWaitMs, resolve);
    try {
      await Promise.race([ended, timeout]);
    } finally {
      timer.cancel();
    }
    return { polled: [...polled], pending };
  }

  return (project) => (project === undefined ? pollAll() : pollOne(project));
}
