import { limitConcurrency } from '../concurrency/limit-concurrency.ts';
import type { ProjectConfig } from '../config/config.ts';
import { quoteId } from '../domain/suggest.ts';
import { unlessStoreFails } from '../monitor/errors.ts';
import type { FinishedPoll } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { PollRun, ProjectSchedule } from '../monitor/ports/watched-project.ts';
import { type ScheduledProject, Scheduler } from '../schedule/scheduler.ts';
import type { PollNowResult } from '../web/content.ts';
import type { Engine } from './engine.ts';
import type { Heartbeat } from './heartbeat.ts';
import { endProcess } from './process.ts';

/**
 * Maximum number of healthy projects' polls that wait for their first request, each with some 15 KB of memory; one that has
 * not begun needs 4 KB. Thousands are due at once after a start, a takeover, or a failure of the database.
 */
const MAX_WAITING = 1000;
/** Maximum time that an answer waits for polls on request, ms: shorter than the web server keeps a connection for an answer. */
const MAX_ANSWER_MS = 10_000;
/** Maximum number of single projects that are polled on request at the same time, so that requests cannot crowd out the schedule. */
const MAX_SINGLE_POLLS = 8;
const NOTHING_TO_POLL =
  'this worker polls none of the projects: others poll them, or they are paused';

/**
 * The work of the engine, from its start to its stop: polls by the schedules and on request, each project at most once at a
 * time, and reports of failures.
 */
export class Scheduling {
  readonly #engine: Engine;
  readonly #clock: Clock;
  readonly #scheduler: Scheduler;
  /** Polls on request that run. */
  readonly #requested = new Map<string, Promise<FinishedPoll | undefined>>();
  readonly #limited = limitConcurrency(MAX_WAITING);
  /** Polls that wait for their first request; called when they get it. */
  readonly #waiting = new Map<string, () => void>();
  /** Projects of which a run was passed over because of a pause, and that have not been polled since. */
  readonly #resting = new Set<string>();
  #singlePolls = 0;
  #isPollingAll = false;
  #isOutdated = false;
  #isRunning = false;

  /** @param heartbeat watches the scheduled polls */
  constructor(engine: Engine, clock: Clock, heartbeat?: Heartbeat) {
    this.#engine = engine;
    this.#clock = clock;
    this.#scheduler = new Scheduler({
      clock,
      emit: engine.emit,
      mayRun: (id) => engine.mayPoll(id),
      run: async (id, run) => {
        if (this.#isPaused(id)) {
          this.#resting.add(id);
          return;
        }
        const polling = this.#pollScheduled(id, run);
        void heartbeat?.watch(id, run, polling);
        await polling;
      },
      onError: endProcess,
    });
    engine.observe((event) => {
      if (event.type === 'scheduler.started_poll') this.#waiting.get(event.project)?.();
      if (event.type === 'poll.finished') this.#afterPoll(event.project);
      if (event.type === 'project.resumed') this.#resting.delete(event.project);
    });
    engine.worker?.onChange(({ taken }) => {
      // Another worker may have polled it since.
      for (const { project } of taken) this.#resting.delete(project);
      // After a lost lease, thousands of changes can come in one turn of the event loop.
      if (!this.#isOutdated) setImmediate(() => this.apply());
      this.#isOutdated = true;
    });
  }

  /** Begins to poll and to report failures. One of several workers has started before. */
  start(): void {
    this.#isRunning = true;
    this.apply();
    this.#engine.reporter.start();
    this.#scheduler.start();
  }

  /**
   * Begins no more polls and reports, and resolves when those that run have ended: waits at once, requests after `graceMs`. One
   * of several workers then gives up its projects (docs/specification.md#stopping).
   */
  async stop(graceMs: number): Promise<void> {
    const { reporter, worker, shutdown } = this.#engine;
    this.#isRunning = false;
    this.#scheduler.stop();
    shutdown.begin(graceMs);
    const reported = reporter.stop();
    // Polls are committed and failures reported under the lease, so the lease ends after them.
    const idle = Promise.allSettled([this.#scheduler.idle(), ...this.#requested.values()]);
    const ended = Promise.all([idle, reported]);
    await Promise.all([ended, worker?.stop(ended)]);
  }

  /** Whether polls begin: it runs, and one of several workers is connected. */
  isActive(): boolean {
    return this.#isRunning && this.#engine.worker?.isConnected() !== false;
  }

  /** Schedules the configured projects. Projects that another worker owns get a schedule but are not polled. */
  apply(): void {
    this.#isOutdated = false;
    const { projects, jitterMs } = this.#engine.config;
    for (const { id, pauses } of projects) if (pauses.isPaused) this.#resting.add(id);
    this.#scheduler.set(
      // One that is no longer paused is polled at once, as a new one is.
      projects.filter(({ pauses }) => !pauses.isPaused).map((project) => this.#scheduled(project)),
      jitterMs,
    );
  }

  #scheduled(project: ProjectConfig): ScheduledProject {
    const { id, timezone } = project;
    return {
      id,
      schedule: this.#engine.scheduleOf(project),
      timezone,
      lastPollAt: this.#engine.health(id)?.lastPollAt,
      isOwnedElsewhere: !this.#engine.mayPoll(id),
    };
  }

  /** Schedules a project that has become idle, or is no longer. */
  #afterPoll(id: string): void {
    const project = this.#engine.projects.get(id);
    if (project?.idleSchedule === undefined) return;
    this.#scheduler.change(this.#scheduled(project), this.#engine.config.jitterMs);
  }

  /** Returns when a project is due next, as {@link Scheduler.next}; undefined while it is not polled on purpose. */
  next(id: string): number | undefined {
    if (this.#isPaused(id)) return undefined;
    return this.#scheduler.next(id, this.#engine.health(id)?.lastPollAt);
  }

  /** Returns the schedule of a project for its metrics, as {@link Scheduler.schedule}. */
  schedule(id: string): ProjectSchedule | undefined {
    return this.#scheduler.schedule(id);
  }

  /** Polls a project outside of its schedule, or with undefined all that this process may poll (`PollNow`). */
  pollNow(project: string | undefined): Promise<PollNowResult> {
    return project === undefined ? this.#pollAllNow() : this.#pollOneNow(project);
  }

  async #pollOneNow(id: string): Promise<PollNowResult> {
    const { projects, worker } = this.#engine;
    const name = `project ${quoteId(id)}`;
    if (!projects.has(id)) {
      return { refusal: 'unknown', error: `${name} is not in the configuration` };
    }
    if (!this.#engine.mayPoll(id)) {
      const owner = await unlessStoreFails(async () => await worker?.ownerOf(id));
      const who = owner === undefined ? 'not polled by this worker' : `polled by worker ${owner}`;
      return { refusal: 'elsewhere', error: `${name} is ${who}: send the request to its worker` };
    }
    if (this.#isPaused(id)) return { refusal: 'paused', error: `${name} is paused` };
    if (this.#isPolling(id)) {
      return { refusal: 'running', error: `a poll of ${name} is already running` };
    }
    if (this.#singlePolls >= MAX_SINGLE_POLLS) {
      const error = `${MAX_SINGLE_POLLS} projects are already polled on request: try again`;
      return { refusal: 'busy', error };
    }
    this.#singlePolls += 1;
    const polling = this.#pollRequested(id).finally(() => {
      this.#singlePolls -= 1;
    });
    const result = await this.#answerOf([polling]);
    if (result.pending > 0 || result.polled.length > 0) return result;
    if (!this.#isRunning) return { refusal: 'busy', error: 'evalwatch is stopping' };
    const error = `${name} was not polled: another worker took it over, or a reload removed it`;
    return { refusal: 'elsewhere', error };
  }

  async #pollAllNow(): Promise<PollNowResult> {
    if (this.#isPollingAll) {
      return { refusal: 'running', error: 'all projects are already being polled' };
    }
    const { projects, config } = this.#engine;
    const owned = [...projects.keys()].filter(
      (id) => this.#engine.mayPoll(id) && !this.#isPaused(id),
    );
    if (owned.length === 0) {
      return { refusal: 'elsewhere', error: NOTHING_TO_POLL };
    }
    this.#isPollingAll = true;
    const requestedAt = this.#clock.now();
    // The other half of the slots is left to the schedule.
    const limited = limitConcurrency(Math.max(1, Math.floor(config.service.maxConcurrency / 2)));
    const polls = owned.map((id) =>
      limited(async () => {
        // A poll of its schedule may have come first.
        const lastPollAt = this.#engine.health(id)?.lastPollAt ?? -Infinity;
        return lastPollAt > requestedAt ? undefined : await this.#pollRequested(id);
      }),
    );
    void Promise.allSettled(polls).then(() => (this.#isPollingAll = false));
    return await this.#answerOf(polls);
  }

  /** Waits for the polls, but not longer than an answer may take. A poll that is undefined was not made. */
  async #answerOf(polls: readonly Promise<FinishedPoll | undefined>[]) {
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
    const timer = this.#clock.timeout(MAX_ANSWER_MS, resolve);
    try {
      await Promise.race([ended, timeout]);
    } finally {
      timer.cancel();
    }
    return { polled: [...polled], pending };
  }

  /** Whether the project is not polled for a time. */
  #isPaused(id: string): boolean {
    const project = this.#engine.projects.get(id);
    return project !== undefined && this.#engine.pauseOf(project)?.polls === 'stop';
  }

  /** Whether a poll of the project runs, by its schedule or on request. */
  #isPolling(id: string): boolean {
    return this.#scheduler.isRunning(id) || this.#requested.has(id);
  }

  /**
   * Polls a project outside of its schedule. A scheduled run that comes due meanwhile starts after this poll. Resolves to
   * undefined if a poll of the project runs, after `stop`, and as {@link Engine.poll} does.
   */
  async #pollRequested(id: string): Promise<FinishedPoll | undefined> {
    if (!this.#isRunning || this.#isPolling(id)) return undefined;
    const polling = this.#poll(id, { dueAt: this.#clock.now() });
    this.#requested.set(id, polling);
    try {
      return await polling;
    } finally {
      this.#requested.delete(id);
    }
  }

  /** Polls once few others wait. The poll of a failing project does not wait: it may wait longer for its request. */
  async #pollScheduled(id: string, run: PollRun): Promise<FinishedPoll | undefined> {
    const isFailing = (this.#engine.health(id)?.consecutiveFailures ?? 0) > 0;
    if (isFailing) return await this.#pollAfterRequested(id, run);
    const { polling } = await this.#limited(async () => {
      const firstRequest = Promise.withResolvers<void>();
      this.#waiting.set(id, firstRequest.resolve);
      const begun = this.#pollAfterRequested(id, run);
      await Promise.race([begun, firstRequest.promise]);
      this.#waiting.delete(id);
      return { polling: begun };
    });
    return await polling;
  }

  async #pollAfterRequested(id: string, run: PollRun): Promise<FinishedPoll | undefined> {
    await this.#requested.get(id);
    return this.#isRunning ? await this.#poll(id, run) : undefined;
  }

  async #poll(id: string, run: PollRun): Promise<FinishedPoll | undefined> {
    // A poll that the pause has not stopped ends no pause.
    const endsPause = this.#resting.has(id) && !this.#isPaused(id);
    return await this.#engine.poll(id, { ...run, endsPause });
  }
}
