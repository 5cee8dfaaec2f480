import type { Observer } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { ProjectSchedule } from '../monitor/ports/watched-project.ts';
import { createEntries, dueAfter, type Entry, type ScheduledProject } from './entries.ts';
import { startHeartbeat } from './heartbeat.ts';
import { type Setback, watchForSetbacks } from './setback.ts';

const SECOND = 1000;
/** Maximum number of missed runs that are counted, in case the clock jumps by decades. */
const MAX_MISSED = 100_000;
/** Time by which a timer may fire before the wall clock has reached its due time, ms. */
const TIMER_TOLERANCE_MS = 20;

/** Times are epoch ms. */
export interface Run {
  /** When it should have started. */
  readonly dueAt: number;
  /** When the next one is due. */
  readonly nextAt: number;
}

export interface Scheduler {
  /**
   * Schedules these projects instead of those before (docs/specification.md#schedules). A project that keeps its schedule,
   * time zone and jitter keeps its due time; running polls are not touched. A project that is added after the start is
   * polled at once. Two kinds are polled only if they were never polled or missed a run since their last poll: a project
   * that is added before the start, at the start, and one that another worker owned, at once. `maxJitterMs` is the time over
   * which starts are spread.
   * @throws {RangeError} if a schedule or time zone is not valid; then nothing has changed
   */
  set(projects: readonly ScheduledProject[], maxJitterMs: number): void;
  /**
   * Schedules these projects as `set` does, with the jitter of the last `set`; leaves all others as they are.
   * @throws {RangeError} if a schedule or time zone is not valid; then nothing has changed
   */
  update(projects: readonly ScheduledProject[]): void;
  start(): void;
  /** Starts no more polls. */
  stop(): void;
  /** Resolves when no poll runs any more. */
  idle(): Promise<void>;
  /** Whether a poll of the project runs. */
  isRunning(project: string): boolean;
  /**
   * Returns when the project is due next; in the past if a tick is late. Follows the schedule if another worker polls it;
   * undefined for an unknown project.
   */
  next(project: string): number | undefined;
  /**
   * Returns the schedule of a project for docs/metrics.md#schedule; undefined for an unknown project. The longest interval is
   * computed on first use.
   */
  schedule(project: string): ProjectSchedule | undefined;
}

export interface SchedulerOptions {
  /** Polls a project once. Not called again for it before it has settled. */
  readonly run: (project: string, run: Run) => Promise<void>;
  /** Checked before each tick: after a suspend the scheduled projects may be out of date. */
  readonly mayRun?: (project: string) => boolean;
  readonly clock: Clock;
  /** Receives `scheduler.overlapped` and `scheduler.missed`. */
  readonly emit: Observer;
  /** Receives errors of `run`: bugs. */
  readonly onError: (error: unknown) => void;
}

/** Polls projects by their schedules, each at most once at a time (docs/specification.md#schedules). */
export function createScheduler(options: SchedulerOptions): Scheduler {
  const { run, mayRun = () => true, clock, emit, onError } = options;
  const entries = createEntries();
  const running = new Map<string, Promise<void>>();
  let stopHeartbeat: (() => void) | undefined;
  const detectSetback = watchForSetbacks(clock);

  function set(projects: readonly ScheduledProject[], maxJitterMs: number): void {
    const now = clock.now();
    entries.set(projects, maxJitterMs, { now, isStarted: stopHeartbeat !== undefined });
    beat(now);
  }

  function update(projects: readonly ScheduledProject[]): void {
    const now = clock.now();
    const isStarted = stopHeartbeat !== undefined;
    const updated = entries.update(projects, { now, isStarted });
    if (isStarted) for (const entry of updated) look(entry, now);
  }

  function beat(now: number): void {
    if (stopHeartbeat === undefined) return;
    const setback = detectSetback(now);
    for (const entry of entries.values()) {
      if (setback && !entry.isOwnedElsewhere) {
        entry.dueAt = Math.min(entry.dueAt, dueAgain(entry, setback));
      }
      look(entry, now);
    }
  }

  /** Starts the poll of an entry that is due, or the timer of one that is due before the next beat. */
  function look(entry: Entry, now: number): void {
    if (entry.dueAt <= now) tick(entry, now);
    const nextBeatAt = (Math.floor(now / SECOND) + 1) * SECOND;
    if (entry.dueAt > now && entry.dueAt < nextBeatAt) wait(entry, now);
  }

  function wait(entry: Entry, now: number): void {
    entry.timer?.cancel();
    entry.timer = clock.timeout(entry.dueAt - now, () => {
      const at = clock.now() + TIMER_TOLERANCE_MS;
      // Otherwise the clock was set back in between: the next beat handles it.
      if (entry.dueAt <= at) tick(entry, Math.max(clock.now(), entry.dueAt));
    });
  }

  function tick(entry: Entry, now: number): void {
    const { id, plan, jitterMs } = entry;
    // `mayRun` may have set other projects.
    if (!mayRun(id) || entries.get(id) !== entry) return;
    const ranAt = entry.dueAt - jitterMs;
    // Starts only the latest of the runs that have come due since.
    const latest = plan.schedule.lastBetween(ranAt, now - jitterMs) ?? ranAt;
    const missed = plan.schedule.countBetween(ranAt, latest, MAX_MISSED);
    entry.dueAt = dueAfter(entry, now);
    entry.last = { dueAt: latest + jitterMs, at: clock.monotonic() };
    if (missed > 0) emit({ type: 'scheduler.missed', project: id, count: missed });
    if (running.has(id)) emit({ type: 'scheduler.overlapped', project: id });
    else poll(id, { dueAt: latest + jitterMs, nextAt: entry.dueAt });
  }

  function poll(id: string, due: Run): void {
    // Async, so that a throw is handled like a rejection.
    const ended = (async () => run(id, due))()
      .catch(onError)
      .finally(() => running.delete(id));
    running.set(id, ended);
  }

  return {
    set,
    update,
    start: () => {
      stopHeartbeat ??= startHeartbeat(clock, () => beat(clock.now()));
      beat(clock.now());
    },
    stop: () => {
      stopHeartbeat?.();
      stopHeartbeat = undefined;
      for (const { timer } of entries.values()) timer?.cancel();
    },
    idle: async () => {
      await Promise.allSettled(running.values());
    },
    isRunning: (project) => running.has(project),
    next: (project) => {
      const entry = entries.get(project);
      return entry?.isOwnedElsewhere === true ? dueAfter(entry, clock.now()) : entry?.dueAt;
    },
    schedule: (project) => {
      const entry = entries.get(project);
      return entry && scheduleOf(entry, clock.now());
    },
  };
}

function scheduleOf({ plan, isOwnedElsewhere, dueAt }: Entry, now: number): ProjectSchedule {
  plan.maxIntervalSeconds ??= plan.schedule.maxIntervalSeconds(now);
  const { maxIntervalSeconds } = plan;
  return { nextPollAt: isOwnedElsewhere ? undefined : dueAt, maxIntervalSeconds };
}

/**
 * Returns when a project is next due after the clock was set back, epoch ms: the first tick after the moment of the setback.
 * The last tick is not repeated, unless the clock was set back by one interval or more. A poll at once stands for the tick
 * before it.
 */
function dueAgain(entry: Entry, setback: Setback): number {
  const first = dueAfter(entry, setback.reached(entry.last?.at));
  const second = dueAfter(entry, first);
  const isLast = entry.last !== undefined && first <= entry.last.dueAt && entry.last.dueAt < second;
  return isLast && setback.byMs < second - first ? second : first;
}
