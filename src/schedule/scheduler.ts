import { createHash } from 'node:crypto';
import type { Observer } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import { parseSchedule, type Schedule } from './calendar.ts';
import { startHeartbeat } from './heartbeat.ts';

const SECOND = 1000;
/** After a clock that jumped by decades the missed runs are not worth counting to the end. */
const MISSED_CAP = 100_000;
/** A timer can fire a moment before the wall clock is where it was expected to be. */
const TIMER_TOLERANCE = 20;
/** A clock that loses no more than this from beat to beat was not set, ms. */
const DRIFT = 20;

export interface ScheduledProject {
  readonly id: string;
  /** A valid cron expression. */
  readonly schedule: string;
  /** A valid IANA zone. */
  readonly timezone: string;
  /** Epoch ms; undefined if it was never polled. */
  readonly lastPollAt: number | undefined;
  /** It is known, and not due before this is over: somebody else polls it. */
  readonly rests?: boolean;
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
   * Makes these the scheduled projects. One that keeps its schedule, time zone and jitter keeps its due time; a poll
   * that runs goes on in any case. Once started a new one is polled at once; before, and when its rest is over, one that was
   * never polled or whose run came due since its last poll (docs/specification.md#schedules). `jitterMs` is the time over
   * which starts are spread.
   * @throws {RangeError} if a schedule or time zone is not valid; then nothing has changed
   */
  set(projects: readonly ScheduledProject[], jitterMs: number): void;
  start(): void;
  /** Starts no more polls. */
  stop(): void;
  /** Resolves when no poll runs any more. */
  idle(): Promise<void>;
  /**
   * When the project is due next; in the past if a tick that should have come has not. By its schedule if somebody else
   * polls it; undefined if it is unknown.
   */
  next(project: string): number | undefined;
  /** Schedules for docs/metrics.md#schedule. Resting projects are not due. The longest interval is computed on first use. */
  projects(): Iterable<{
    readonly project: string;
    readonly nextPollAt: number | undefined;
    readonly maxIntervalSeconds: number;
  }>;
}

export interface SchedulerOptions {
  /** Polls a project once. Not called again for it before it has settled. */
  readonly run: (project: string, run: Run) => Promise<void>;
  /** Asked before each tick, as what was set may be out of date when a stopped process wakes up. */
  readonly mayRun?: (project: string) => boolean;
  readonly clock: Clock;
  /** Is told `scheduler.overlapped` and `scheduler.missed`. */
  readonly emit: Observer;
  /** Is told what `run` should not have thrown. */
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
  readonly offset: number;
  readonly rests: boolean;
  /** Infinite while it rests. */
  dueAt: number;
  /** Its last tick, and when that was on the monotonic clock. */
  last: { readonly dueAt: number; readonly at: number } | undefined;
  /** Waits for a due time within this second. */
  timer: NodeJS.Timeout | undefined;
}

/** Polls projects by their schedules, each at most once at a time (docs/specification.md#schedules). */
export function createScheduler(options: SchedulerOptions): Scheduler {
  const { run, mayRun = () => true, clock, emit, onError } = options;
  let plans: ReadonlyMap<string, Plan> = new Map();
  let entries: ReadonlyMap<string, Entry> = new Map();
  const running = new Map<string, Promise<void>>();
  let stopHeartbeat: (() => void) | undefined;
  /** When the last beat was, on both clocks. */
  let lastBeat = { wall: -Infinity, at: 0 };
  let spreadMs = 0;

  function set(projects: readonly ScheduledProject[], jitterMs: number): void {
    const now = clock.now();
    const nextPlans = new Map<string, Plan>();
    const nextEntries = new Map<string, Entry>();
    for (const project of projects) {
      const key = JSON.stringify([project.schedule, project.timezone]);
      const plan = nextPlans.get(key) ?? plans.get(key) ?? planOf(project);
      nextPlans.set(key, plan);
      const old = entries.get(project.id);
      const offset = old && jitterMs === spreadMs ? old.offset : jitterOf(project.id, jitterMs);
      const { rests = false } = project;
      const unchanged = old?.plan === plan && old.offset === offset && old.rests === rests;
      nextEntries.set(project.id, unchanged ? old : entryOf(project, plan, offset, now));
    }
    for (const [id, old] of entries) if (nextEntries.get(id) !== old) clearTimeout(old.timer);
    plans = nextPlans;
    entries = nextEntries;
    spreadMs = jitterMs;
    beat(now);
  }

  function entryOf(
    { id, lastPollAt, rests = false }: ScheduledProject,
    plan: Plan,
    offset: number,
    now: number,
  ): Entry {
    const old = entries.get(id);
    const isMissed = () =>
      lastPollAt === undefined || dueAfter({ plan, offset }, lastPollAt) <= now;
    let atOnce = (old?.dueAt ?? now) <= now;
    if (old?.rests ?? stopHeartbeat === undefined) atOnce = isMissed();
    // Another computer's clock may be a little ahead: the run that it has polled does not come again.
    const isAhead = lastPollAt !== undefined && lastPollAt > now && lastPollAt < now + SECOND;
    const next = dueAfter({ plan, offset }, isAhead ? lastPollAt : now);
    const dueAt = rests ? Infinity : atOnce ? now : next;
    return { id, plan, offset, rests, dueAt, last: undefined, timer: undefined };
  }

  function beat(now: number): void {
    if (stopHeartbeat === undefined) return;
    const at = clock.monotonic();
    // What the wall clock would have shown at a moment, had it always been as it is now.
    const wallAt = (moment: number) => now - (at - moment);
    const before = lastBeat;
    const setBackBy = before.wall - wallAt(before.at);
    lastBeat = { wall: now, at };
    const nextBeatAt = (Math.floor(now / SECOND) + 1) * SECOND;
    for (const entry of entries.values()) {
      if (setBackBy > DRIFT && !entry.rests) {
        const seenUntil = wallAt(Math.max(before.at, entry.last?.at ?? 0));
        entry.dueAt = Math.min(entry.dueAt, dueAgain(entry, seenUntil, setBackBy));
      }
      if (entry.dueAt <= now) tick(entry, now);
      if (entry.dueAt > now && entry.dueAt < nextBeatAt) wait(entry, now);
    }
  }

  function wait(entry: Entry, now: number): void {
    clearTimeout(entry.timer);
    entry.timer = setTimeout(() => {
      const at = clock.now() + TIMER_TOLERANCE;
      // Otherwise the clock was set back in between: the next beat sees to it.
      if (entry.dueAt <= at) tick(entry, Math.max(clock.now(), entry.dueAt));
    }, entry.dueAt - now);
  }

  function tick(entry: Entry, now: number): void {
    const { id, plan, offset } = entry;
    // What it asks may have set other projects.
    if (!mayRun(id) || entries.get(id) !== entry) return;
    const ranAt = entry.dueAt - offset;
    // Of the runs that have come due since, the latest one starts now.
    const latest = plan.schedule.lastBetween(ranAt, now - offset) ?? ranAt;
    const missed = plan.schedule.countBetween(ranAt, latest, MISSED_CAP);
    entry.dueAt = dueAfter(entry, now);
    entry.last = { dueAt: latest + offset, at: clock.monotonic() };
    if (missed > 0) emit({ type: 'scheduler.missed', project: id, count: missed });
    if (running.has(id)) emit({ type: 'scheduler.overlapped', project: id });
    else poll(id, { dueAt: latest + offset, nextAt: entry.dueAt });
  }

  function poll(id: string, due: Run): void {
    // Async, so that what throws at once is no different from what rejects later.
    const ended = (async () => run(id, due))()
      .catch(onError)
      .finally(() => running.delete(id));
    running.set(id, ended);
  }

  return {
    set,
    start: () => {
      stopHeartbeat ??= startHeartbeat(clock, () => beat(clock.now()));
      beat(clock.now());
    },
    stop: () => {
      stopHeartbeat?.();
      stopHeartbeat = undefined;
      for (const { timer } of entries.values()) clearTimeout(timer);
    },
    idle: async () => {
      await Promise.allSettled(running.values());
    },
    next: (project) => {
      const entry = entries.get(project);
      return entry?.rests === true ? dueAfter(entry, clock.now()) : entry?.dueAt;
    },
    *projects() {
      for (const entry of entries.values()) {
        const { id, plan } = entry;
        plan.maxIntervalSeconds ??= plan.schedule.maxIntervalSeconds(clock.now());
        const { maxIntervalSeconds } = plan;
        yield { project: id, nextPollAt: whenDue(entry), maxIntervalSeconds };
      }
    },
  };
}

function whenDue({ rests, dueAt }: Entry): number | undefined {
  return rests ? undefined : dueAt;
}

function planOf({ schedule, timezone }: ScheduledProject): Plan {
  return { schedule: parseSchedule(schedule, timezone), maxIntervalSeconds: undefined };
}

/** The first time after this one at which a project is due, epoch ms. */
function dueAfter({ plan, offset }: Pick<Entry, 'plan' | 'offset'>, ms: number): number {
  return plan.schedule.nextAfter(ms - offset) + offset;
}

/**
 * When a project is due after its clock was set back, ms: at the first tick since the moment that the clock was known to
 * have reached before, seen as it is now. Its last tick does not come again unless an interval has passed meanwhile.
 */
function dueAgain(entry: Entry, seenUntil: number, setBackBy: number): number {
  const first = dueAfter(entry, seenUntil);
  const second = dueAfter(entry, first);
  return first === entry.last?.dueAt && setBackBy < second - first ? second : first;
}

/** A project's share of the jitter, whole ms in [0, jitterMs): chance between projects, the same after a restart. */
function jitterOf(project: string, jitterMs: number): number {
  const digest = createHash('sha256').update(project).digest();
  return Math.floor((digest.readUInt32BE(0) / 2 ** 32) * jitterMs);
}
