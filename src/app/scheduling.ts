import { limitConcurrency } from '../concurrency/limit-concurrency.ts';
import type { FinishedPoll } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { PollRun, ProjectSchedule } from '../monitor/ports/watched-project.ts';
import { Scheduler } from '../schedule/scheduler.ts';
import type { Engine } from './engine.ts';
import type { Heartbeat } from './heartbeat.ts';
import { endProcess } from './process.ts';

/**
 * Maximum number of healthy projects' polls that wait for their first request, each with some 15 KB of memory; one that has
 * not begun needs 4 KB. Thousands are due at once after a start, a takeover, or a failure of the database.
 */
const MAX_WAITING = 1000;

/** Polls the engine's projects by their schedules and on request, each at most once at a time. */
export class Scheduling {
  readonly #engine: Engine;
  readonly #clock: Clock;
  readonly #scheduler: Scheduler;
  /** Polls on request that run. */
  readonly #requested = new Map<string, Promise<FinishedPoll | undefined>>();
  readonly #limited = limitConcurrency(MAX_WAITING);
  /** Polls that wait for their first request; called when they get it. */
  readonly #waiting = new Map<string, () => void>();
  #isOutdated = false;
  #isStopped = false;

  /** @param heartbeat watches the scheduled polls */
  constructor(engine: Engine, clock: Clock, heartbeat?: Heartbeat) {
    this.#engine = engine;
    this.#clock = clock;
    this.#scheduler = new Scheduler({
      clock,
      emit: engine.emit,
      mayRun: (id) => engine.mayPoll(id),
      run: async (id, run) => {
        const polling = this.#poll(id, run);
        void heartbeat?.watch(id, run, polling);
        await polling;
      },
      onError: endProcess,
    });
    engine.observe((event) => {
      if (event.type === 'scheduler.started_poll') this.#waiting.get(event.project)?.();
    });
    engine.worker?.onChange(() => {
      // After a lost lease, thousands of changes can come in one turn of the event loop.
      if (!this.#isOutdated) setImmediate(() => this.apply());
      this.#isOutdated = true;
    });
  }

  /** Schedules the configured projects. Projects that another worker owns get a schedule but are not polled. */
  apply(): void {
    this.#isOutdated = false;
    const { projects, jitterMs } = this.#engine.config();
    const scheduled = projects.map(({ id, schedule, timezone }) => ({
      id,
      schedule,
      timezone,
      lastPollAt: this.#engine.health(id)?.lastPollAt,
      isOwnedElsewhere: !this.#engine.mayPoll(id),
    }));
    this.#scheduler.set(scheduled, jitterMs);
  }

  start(): void {
    this.#scheduler.start();
  }

  /** Begins no more polls. */
  stop(): void {
    this.#isStopped = true;
    this.#scheduler.stop();
  }

  /** Resolves when no poll runs any more. */
  async idle(): Promise<void> {
    await Promise.allSettled([this.#scheduler.idle(), ...this.#requested.values()]);
  }

  /** Returns when a project is due next, as {@link Scheduler.next}. */
  next(id: string): number | undefined {
    return this.#scheduler.next(id, this.#engine.health(id)?.lastPollAt);
  }

  /** Returns the schedule of a project for its metrics, as {@link Scheduler.schedule}. */
  schedule(id: string): ProjectSchedule | undefined {
    return this.#scheduler.schedule(id);
  }

  /** Whether a poll of the project runs, by its schedule or on request. */
  isPolling(id: string): boolean {
    return this.#scheduler.isRunning(id) || this.#requested.has(id);
  }

  /**
   * Polls a project outside of its schedule. A scheduled run that comes due meanwhile starts after this poll. Resolves to
   * undefined if a poll of the project runs, after `stop`, and as {@link Engine.poll} does.
   */
  async pollNow(id: string): Promise<FinishedPoll | undefined> {
    if (this.#isStopped || this.isPolling(id)) return undefined;
    const polling = this.#engine.poll(id, { dueAt: this.#clock.now(), nextAt: undefined });
    this.#requested.set(id, polling);
    try {
      return await polling;
    } finally {
      this.#requested.delete(id);
    }
  }

  /** Polls once few others wait. The poll of a failing project does not wait: it may wait longer for its request. */
  async #poll(id: string, run: PollRun): Promise<FinishedPoll | undefined> {
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
    return this.#isStopped ? undefined : await this.#engine.poll(id, run);
  }
}
