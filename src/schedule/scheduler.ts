import { hash } from 'node:crypto';
import type { Observer } from '../monitor/events.ts';
import type { Clock, Timer } from '../monitor/ports/clock.ts';
import type { PollRun, ProjectSchedule } from '../monitor/ports/watched-project.ts';
import { lastRun, parseSchedule, type Schedule } from './cron.ts';

const SECOND = 1000;
/** Time by which a timer may fire before the wall clock has reached its due time, ms. */
const TIMER_TOLERANCE_MS = 20;
/** Drift of the wall clock between two looks that does not count as a setback, ms. */
const MAX_DRIFT_MS = 20;
/** Time for which a poll of another worker may run, and its outcome be on its way, ms. */
const MAX_UNKNOWN_MS = 120_000;
/** Time by which the clock of another worker may be ahead, ms. */
const MAX_AHEAD_MS = 1000;
/** Maximum number of missed runs of a project that are counted at a time. */
const MAX_MISSED = 1000;
/** Time after which a beat goes on in the next turn of the event loop, ms. */
const MAX_TURN_MS = 10;

export interface ScheduledProject {
  readonly id: string;
  /** A cron expression. */
  readonly schedule: string;
  /** An IANA zone. */
  readonly timezone: string;
  /** Epoch ms; undefined if it was never polled. */
  readonly lastPollAt: number | undefined;
  /** Whether another worker polls the project. It then has a schedule but is never due here. */
  readonly isOwnedElsewhere: boolean;
}

export interface SchedulerOptions {
  /** Polls a project once. Not called again for it before it has settled. */
  readonly run: (project: string, run: PollRun) => Promise<void>;
  /** Checked before each tick: after a suspend the scheduled projects may be out of date. */
  readonly mayRun?: (project: string) => boolean;
  readonly clock: Clock;
  /** Receives `scheduler.overlapped` and `scheduler.missed`. */
  readonly emit: Observer;
  /** Receives errors of `run`: bugs. */
  readonly onError: (error: unknown) => void;
}

/** A scheduled project. */
interface Entry {
  readonly project: ScheduledProject;
  readonly schedule: Schedule;
  readonly maxJitterMs: number;
  /** How much later than its schedule the project is polled, ms. */
  readonly jitterMs: number;
  /** Infinity while another worker owns the project. */
  dueAt: number;
  /** Its last tick, or poll at once, and when that was on the monotonic clock. */
  last?: { readonly dueAt: number; readonly at: number };
  /** Waits for a due time within this second. */
  timer?: Timer;
}

/** A time of both clocks. */
interface Moment {
  readonly wall: number;
  readonly at: number;
}

/**
 * Polls projects by their schedules, each at most once at a time (docs/specification.md#schedules). Looks for what is due at
 * the start of every second of wall time, and within a second of real time after the clock was set or the machine slept.
 */
export class Scheduler {
  readonly #options: SchedulerOptions;
  #entries = new Map<string, Entry>();
  readonly #running = new Map<string, Promise<void>>();
  /** Waits for the next beat. Undefined before the start and after the stop. */
  #nextBeat: Timer | undefined;
  /** Waits to go on with a beat that takes long. */
  #rest: Timer | undefined;
  /** When it was last looked whether the wall clock was set back. */
  #seen: Moment;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#seen = this.#moment();
  }

  /**
   * Schedules these projects instead of those before. A project that keeps its schedule, time zone and jitter keeps its due
   * time; running polls are not touched. A project that is added after the start is polled at once. Two kinds are polled only
   * if they were never polled or missed a run since their last poll: a project that is added before the start, at the start,
   * and one that another worker owned, at once. `maxJitterMs` is the time over which starts are spread.
   * @throws {RangeError} if a schedule or time zone is not valid; then nothing has changed
   */
  set(projects: readonly ScheduledProject[], maxJitterMs: number): void {
    this.#noticeSetback();
    const entries = projects.map((project) => this.#entryOf(project, maxJitterMs));
    const next = new Map(entries.map((entry) => [entry.project.id, entry]));
    for (const [id, old] of this.#entries) if (next.get(id) !== old) old.timer?.cancel();
    this.#entries = next;
    this.#beat();
  }

  /** Schedules one project anew, by the rules of `set`. Does nothing if it is not scheduled or nothing has changed. */
  change(project: ScheduledProject, maxJitterMs: number): void {
    this.#noticeSetback();
    const old = this.#entries.get(project.id);
    const entry = this.#entryOf(project, maxJitterMs);
    if (old === undefined || entry === old) return;
    old.timer?.cancel();
    this.#entries.set(project.id, entry);
  }

  start(): void {
    if (!this.#isStarted()) this.#awaitBeat();
    this.#beat();
  }

  /** Starts no more polls. */
  stop(): void {
    this.#nextBeat?.cancel();
    this.#nextBeat = undefined;
    this.#rest?.cancel();
    for (const { timer } of this.#entries.values()) timer?.cancel();
  }

  /** Resolves when no poll runs any more. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#running.values());
  }

  /** Whether a poll of the project runs. */
  isRunning(project: string): boolean {
    return this.#running.has(project);
  }

  /**
   * Returns when the project is due next; in the past if a tick is late. If another worker polls it, follows the schedule,
   * unless no poll after its last known one, at `lastPollAt`, has been due for long. Undefined for an unknown project.
   */
  next(project: string, lastPollAt?: number): number | undefined {
    const entry = this.#entries.get(project);
    if (!entry?.project.isOwnedElsewhere) return entry?.dueAt;
    const now = this.#options.clock.now();
    const missed = lastPollAt === undefined ? Infinity : dueAfter(entry, lastPollAt);
    return missed < now - MAX_UNKNOWN_MS ? missed : dueAfter(entry, now);
  }

  /** Returns the schedule of a project for docs/metrics.md#schedule; undefined for an unknown project. */
  schedule(project: string): ProjectSchedule | undefined {
    const entry = this.#entries.get(project);
    if (entry === undefined) return undefined;
    return {
      nextPollAt: entry.project.isOwnedElsewhere ? undefined : entry.dueAt,
      maxIntervalSeconds: entry.schedule.maxIntervalMs(this.#options.clock.now()) / SECOND,
    };
  }

  /** Returns the entry of a project: the one that it has if nothing has changed. */
  #entryOf(project: ScheduledProject, maxJitterMs: number): Entry {
    const old = this.#entries.get(project.id);
    const isUnchanged =
      old?.maxJitterMs === maxJitterMs &&
      old.project.schedule === project.schedule &&
      old.project.timezone === project.timezone &&
      old.project.isOwnedElsewhere === project.isOwnedElsewhere;
    if (isUnchanged) return old;
    const { id, schedule, timezone } = project;
    const entry: Entry = {
      project,
      schedule: parseSchedule(schedule, timezone),
      maxJitterMs,
      jitterMs: jitterOf(id, maxJitterMs),
      dueAt: Infinity,
    };
    if (!project.isOwnedElsewhere) entry.dueAt = this.#firstDue(entry, old);
    return entry;
  }

  #firstDue(entry: Entry, old: Entry | undefined): number {
    const { lastPollAt } = entry.project;
    const now = this.#options.clock.now();
    const aheadMs = lastPollAt === undefined ? 0 : lastPollAt - now;
    const isFarAhead = aheadMs >= MAX_AHEAD_MS;
    let isDue: boolean;
    if (old?.project.isOwnedElsewhere ?? !this.#isStarted()) {
      isDue = lastPollAt === undefined || dueAfter(entry, lastPollAt) <= now;
      // Nothing tells whether a run was missed since.
      if (isFarAhead && old !== undefined) isDue = true;
    } else {
      isDue = old === undefined || old.dueAt <= now;
    }
    if (isDue) return now;
    // Another worker's clock may be a little ahead: its run is not polled twice.
    return dueAfter(entry, isFarAhead ? now : now + Math.max(0, aheadMs));
  }

  #isStarted(): boolean {
    return this.#nextBeat !== undefined;
  }

  #awaitBeat(): void {
    const { clock } = this.#options;
    const now = clock.now();
    const nextAt = (Math.floor(now / SECOND) + 1) * SECOND;
    this.#nextBeat = clock.timeout(nextAt - now, () => {
      const earlyBy = nextAt - clock.now();
      this.#awaitBeat();
      // Earlier than that, the clock was set back meanwhile.
      if (earlyBy <= 0 || earlyBy > TIMER_TOLERANCE_MS) this.#beat();
    });
  }

  #moment(): Moment {
    const { clock } = this.#options;
    return { wall: clock.now(), at: clock.monotonic() };
  }

  /** Gives projects an earlier due time if the wall clock was set back. */
  #noticeSetback(): void {
    const seen = this.#seen;
    const now = this.#moment();
    this.#seen = now;
    // The wall time at a moment of the monotonic clock, had the wall clock always been as it is now.
    const wallAt = (moment: number) => now.wall - (now.at - moment);
    const setBackBy = seen.wall - wallAt(seen.at);
    if (setBackBy <= MAX_DRIFT_MS) return;
    for (const entry of this.#entries.values()) {
      if (entry.dueAt === Infinity) continue;
      const reached = wallAt(Math.max(seen.at, entry.last?.at ?? 0));
      entry.dueAt = Math.min(entry.dueAt, dueAgain(entry, reached, setBackBy));
    }
  }

  /** Looks at all entries. */
  #beat(): void {
    if (!this.#isStarted()) return;
    this.#noticeSetback();
    this.#rest?.cancel();
    this.#lookAt(this.#entries.values());
  }

  /** Starts the polls that are due, and the timers of those that are due before the next beat. */
  #lookAt(entries: MapIterator<Entry>): void {
    const { clock } = this.#options;
    const { wall: now, at: startedAt } = this.#moment();
    const nextBeatAt = (Math.floor(now / SECOND) + 1) * SECOND;
    const current = this.#entries;
    for (const entry of entries) {
      // `mayRun` may have set other projects.
      if (this.#entries !== current) return;
      if (entry.dueAt <= now) this.#tick(entry, now);
      if (entry.dueAt > now && entry.dueAt < nextBeatAt) this.#await(entry, now);
      if (clock.monotonic() - startedAt > MAX_TURN_MS) {
        // An iterator of a map goes on where it was left.
        this.#rest?.cancel();
        this.#rest = clock.timeout(0, () => this.#lookAt(entries));
        return;
      }
    }
  }

  #await(entry: Entry, now: number): void {
    const { clock } = this.#options;
    entry.timer?.cancel();
    entry.timer = clock.timeout(entry.dueAt - now, () => {
      const at = clock.now() + TIMER_TOLERANCE_MS;
      // Otherwise the clock was set back in between: the next beat handles it.
      if (entry.dueAt <= at) this.#tick(entry, Math.max(clock.now(), entry.dueAt));
    });
  }

  #tick(entry: Entry, now: number): void {
    const { mayRun, clock, emit } = this.#options;
    const { project, schedule, jitterMs } = entry;
    const { id } = project;
    // `mayRun` may have set other projects.
    if (mayRun?.(id) === false || this.#entries.get(id) !== entry) return;
    // Starts only the newest of the runs that have come due since.
    const { newest, missed } = runsSince(schedule, entry.dueAt - jitterMs, now - jitterMs);
    const dueAt = newest + jitterMs;
    entry.dueAt = dueAfter(entry, now);
    entry.last = { dueAt, at: clock.monotonic() };
    if (missed > 0) emit({ type: 'scheduler.missed', project: id, count: missed });
    if (this.#running.has(id)) emit({ type: 'scheduler.overlapped', project: id });
    else this.#poll(id, { dueAt });
  }

  #poll(id: string, due: PollRun): void {
    const { run, onError } = this.#options;
    // Async, so that a throw is handled like a rejection.
    const ended = (async () => run(id, due))()
      .catch(onError)
      .finally(() => this.#running.delete(id));
    this.#running.set(id, ended);
  }
}

/** The first time after this one at which a project is due, epoch ms. */
function dueAfter({ schedule, jitterMs }: Entry, ms: number): number {
  return schedule.nextAfter(ms - jitterMs) + jitterMs;
}

/** Returns the newest of the runs until `now`, of which `first` is one, and how many others came due, at most 1,000. */
function runsSince(
  schedule: Schedule,
  first: number,
  now: number,
): { readonly newest: number; readonly missed: number } {
  let newest = first;
  let missed = 0;
  let next = schedule.nextAfter(first);
  while (next <= now && missed < MAX_MISSED) {
    newest = next;
    missed += 1;
    next = schedule.nextAfter(newest);
  }
  return { newest: lastRun(schedule, newest, now) ?? newest, missed };
}

/**
 * Returns when a project is next due after the clock was set back, epoch ms: the first tick after the time that the clock would
 * show at the last look, or tick if that was later. The last tick is not repeated, unless the clock was set back by one interval
 * or more. A poll at once stands for the tick before it.
 */
function dueAgain(entry: Entry, reached: number, setBackBy: number): number {
  const first = dueAfter(entry, reached);
  const second = dueAfter(entry, first);
  const isLast = entry.last !== undefined && first <= entry.last.dueAt && entry.last.dueAt < second;
  return isLast && setBackBy < second - first ? second : first;
}

/** Returns the jitter of a project, whole ms in [0, maxJitterMs): derived from the id, so that it is the same after a restart. */
function jitterOf(project: string, maxJitterMs: number): number {
  const digest = hash('sha256', project, 'buffer');
  return Math.floor((digest.readUInt32BE(0) / 2 ** 32) * maxJitterMs);
}
