import { hash } from 'node:crypto';
import type { Observer } from '../monitor/events.ts';
import type { Clock, Timer } from '../monitor/ports/clock.ts';
import type { ProjectSchedule } from '../monitor/ports/watched-project.ts';
import { parseSchedule, type Schedule } from './calendar.ts';
import { startHeartbeat } from './heartbeat.ts';
import { type Setback, watchForSetbacks } from './setback.ts';

const SECOND = 1000;
/** Maximum number of missed runs that are counted, in case the clock jumps by decades. */
const MAX_MISSED = 100_000;
/** Time by which a timer may fire before the wall clock has reached its due time, ms. */
const TIMER_TOLERANCE_MS = 20;

export interface ScheduledProject {
  readonly id: string;
  /** A valid cron expression. */
  readonly schedule: string;
  /** A valid IANA zone. */
  readonly timezone: string;
  /** Epoch ms; undefined if it was never polled. */
  readonly lastPollAt: number | undefined;
  /** Whether another worker polls the project. It then has a schedule but is never due here. */
  readonly isOwnedElsewhere?: boolean;
}

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

/** A schedule in a time zone; projects share it. */
interface Plan {
  readonly schedule: Schedule;
  maxIntervalSeconds: number | undefined;
}

interface Entry {
  readonly id: string;
  readonly plan: Plan;
  /** How much later than its schedule the project is polled, ms. */
  readonly jitterMs: number;
  readonly isOwnedElsewhere: boolean;
  /** Infinite while another worker owns it. */
  dueAt: number;
  /** Its last tick, and when that was on the monotonic clock. */
  last: { readonly dueAt: number; readonly at: number } | undefined;
  /** Waits for a due time within this second. */
  timer: Timer | undefined;
}

/** Polls projects by their schedules, each at most once at a time (docs/specification.md#schedules). */
export function createScheduler(options: SchedulerOptions): Scheduler {
  const { run, mayRun = () => true, clock, emit, onError } = options;
  let plans = new Map<string, Plan>();
  let entries = new Map<string, Entry>();
  const running = new Map<string, Promise<void>>();
  let stopHeartbeat: (() => void) | undefined;
  const detectSetback = watchForSetbacks(clock);
  let currentMaxJitterMs = 0;

  function set(projects: readonly ScheduledProject[], maxJitterMs: number): void {
    const now = clock.now();
    const nextPlans = new Map<string, Plan>();
    const nextEntries = new Map<string, Entry>();
    for (const project of projects) {
      nextEntries.set(project.id, entryFor(project, nextPlans, maxJitterMs, now));
    }
    for (const [id, old] of entries) if (nextEntries.get(id) !== old) old.timer?.cancel();
    plans = nextPlans;
    entries = nextEntries;
    currentMaxJitterMs = maxJitterMs;
    beat(now);
  }

  function update(projects: readonly ScheduledProject[]): void {
    const now = clock.now();
    const updated = projects.map((project) => entryFor(project, plans, currentMaxJitterMs, now));
    for (const entry of updated) {
      const old = entries.get(entry.id);
      if (old !== entry) old?.timer?.cancel();
      entries.set(entry.id, entry);
    }
    if (stopHeartbeat === undefined) return;
    for (const entry of updated) look(entry, now);
  }

  /** Returns the entry of a project: the one that it has if nothing has changed. Adds its plan to `nextPlans`. */
  function entryFor(
    project: ScheduledProject,
    nextPlans: Map<string, Plan>,
    maxJitterMs: number,
    now: number,
  ): Entry {
    const key = JSON.stringify([project.schedule, project.timezone]);
    const plan = nextPlans.get(key) ?? plans.get(key) ?? planOf(project);
    nextPlans.set(key, plan);
    const old = entries.get(project.id);
    const keepsJitter = old !== undefined && maxJitterMs === currentMaxJitterMs;
    const jitterMs = keepsJitter ? old.jitterMs : jitterOf(project.id, maxJitterMs);
    const unchanged = old?.plan === plan && old.jitterMs === jitterMs && hasSameOwner(old, project);
    return unchanged ? old : entryOf(project, plan, jitterMs, now);
  }

  function entryOf(
    { id, lastPollAt, isOwnedElsewhere = false }: ScheduledProject,
    plan: Plan,
    jitterMs: number,
    now: number,
  ): Entry {
    const old = entries.get(id);
    const isMissed = () =>
      lastPollAt === undefined || dueAfter({ plan, jitterMs }, lastPollAt) <= now;
    let atOnce = (old?.dueAt ?? now) <= now;
    if (old?.isOwnedElsewhere ?? stopHeartbeat === undefined) atOnce = isMissed();
    // Another worker's clock may be a little ahead: its run is not polled twice.
    const isAhead = lastPollAt !== undefined && lastPollAt > now && lastPollAt < now + SECOND;
    const next = dueAfter({ plan, jitterMs }, isAhead ? lastPollAt : now);
    const dueAt = isOwnedElsewhere ? Infinity : atOnce ? now : next;
    return { id, plan, jitterMs, isOwnedElsewhere, dueAt, last: undefined, timer: undefined };
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

function hasSameOwner(entry: Entry, { isOwnedElsewhere = false }: ScheduledProject): boolean {
  return entry.isOwnedElsewhere === isOwnedElsewhere;
}

function scheduleOf({ plan, isOwnedElsewhere, dueAt }: Entry, now: number): ProjectSchedule {
  plan.maxIntervalSeconds ??= plan.schedule.maxIntervalSeconds(now);
  const { maxIntervalSeconds } = plan;
  return { nextPollAt: isOwnedElsewhere ? undefined : dueAt, maxIntervalSeconds };
}

function planOf({ schedule, timezone }: ScheduledProject): Plan {
  return { schedule: parseSchedule(schedule, timezone), maxIntervalSeconds: undefined };
}

/** The first time after this one at which a project is due, epoch ms. */
function dueAfter({ plan, jitterMs }: Pick<Entry, 'plan' | 'jitterMs'>, ms: number): number {
  return plan.schedule.nextAfter(ms - jitterMs) + jitterMs;
}

/**
 * Returns when a project is next due after the clock was set back, epoch ms: the first tick after the moment of the setback.
 * The last tick is not repeated, unless the clock was set back by one interval or more.
 */
function dueAgain(entry: Entry, setback: Setback): number {
  const first = dueAfter(entry, setback.reached(entry.last?.at));
  const second = dueAfter(entry, first);
  return first === entry.last?.dueAt && setback.byMs < second - first ? second : first;
}

/** Returns the jitter of a project, whole ms in [0, maxJitterMs): derived from the id, so that it is the same after a restart. */
function jitterOf(project: string, maxJitterMs: number): number {
  const digest = hash('sha256', project, 'buffer');
  return Math.floor((digest.readUInt32BE(0) / 2 ** 32) * maxJitterMs);
}
