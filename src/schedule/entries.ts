import { hash } from 'node:crypto';
import type { Timer } from '../monitor/ports/clock.ts';
import { parseSchedule, type Schedule } from './calendar.ts';

/** Time by which the clock of another worker may be ahead, ms. */
const MAX_AHEAD_MS = 1000;

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

/** A schedule in a time zone; projects share it. */
interface Plan {
  readonly schedule: Schedule;
  maxIntervalSeconds: number | undefined;
}

export interface Entry {
  readonly id: string;
  readonly plan: Plan;
  /** How much later than its schedule the project is polled, ms. */
  readonly jitterMs: number;
  readonly isOwnedElsewhere: boolean;
  /** Infinite while another worker owns it. */
  dueAt: number;
  /** Its last tick, or poll at once, and when that was on the monotonic clock. */
  last: { readonly dueAt: number; readonly at: number } | undefined;
  /** Waits for a due time within this second. */
  timer: Timer | undefined;
}

/** The scheduled projects. */
export interface Entries {
  get(project: string): Entry | undefined;
  values(): Iterable<Entry>;
  /** Replaces all. An entry of which nothing has changed stays. @throws {RangeError} and nothing has changed */
  set(projects: readonly ScheduledProject[], maxJitterMs: number, now: Moment): void;
  /** Replaces or adds these, with the jitter of the last `set`, and returns them. @throws {RangeError} as `set` does */
  update(projects: readonly ScheduledProject[], now: Moment): readonly Entry[];
}

interface Moment {
  /** Epoch ms. */
  readonly now: number;
  /** Whether projects are polled already. */
  readonly isStarted: boolean;
}

export function createEntries(): Entries {
  let plans = new Map<string, Plan>();
  let entries = new Map<string, Entry>();
  let currentMaxJitterMs = 0;

  /** Returns the entry of a project: the one that it has if nothing has changed. Adds its plan to `nextPlans`. */
  function entryFor(
    project: ScheduledProject,
    nextPlans: Map<string, Plan>,
    maxJitterMs: number,
    moment: Moment,
  ): Entry {
    const key = JSON.stringify([project.schedule, project.timezone]);
    const plan = nextPlans.get(key) ?? plans.get(key) ?? planOf(project);
    nextPlans.set(key, plan);
    const old = entries.get(project.id);
    const keepsJitter = old !== undefined && maxJitterMs === currentMaxJitterMs;
    const jitterMs = keepsJitter ? old.jitterMs : jitterOf(project.id, maxJitterMs);
    const unchanged = old?.plan === plan && old.jitterMs === jitterMs && hasSameOwner(old, project);
    return unchanged ? old : entryOf(project, { plan, jitterMs }, old, moment);
  }

  return {
    get: (project) => entries.get(project),
    values: () => entries.values(),
    set: (projects, maxJitterMs, moment) => {
      const nextPlans = new Map<string, Plan>();
      const next = new Map<string, Entry>();
      for (const project of projects) {
        next.set(project.id, entryFor(project, nextPlans, maxJitterMs, moment));
      }
      for (const [id, old] of entries) if (next.get(id) !== old) old.timer?.cancel();
      plans = nextPlans;
      entries = next;
      currentMaxJitterMs = maxJitterMs;
    },
    update: (projects, moment) => {
      const updated = projects.map((project) =>
        entryFor(project, plans, currentMaxJitterMs, moment),
      );
      for (const entry of updated) {
        const old = entries.get(entry.id);
        if (old !== entry) old?.timer?.cancel();
        entries.set(entry.id, entry);
      }
      return updated;
    },
  };
}

function entryOf(
  { id, lastPollAt, isOwnedElsewhere = false }: ScheduledProject,
  times: Pick<Entry, 'plan' | 'jitterMs'>,
  old: Entry | undefined,
  { now, isStarted }: Moment,
): Entry {
  const isMissed = () => lastPollAt === undefined || dueAfter(times, lastPollAt) <= now;
  const aheadMs = lastPollAt === undefined ? 0 : lastPollAt - now;
  const isFarAhead = aheadMs >= MAX_AHEAD_MS;
  let atOnce = (old?.dueAt ?? now) <= now;
  if (old?.isOwnedElsewhere ?? !isStarted) atOnce = isMissed();
  // Nothing tells whether a run was missed since.
  if (isFarAhead && old?.isOwnedElsewhere === true) atOnce = true;
  // Another worker's clock may be a little ahead: its run is not polled twice.
  const next = dueAfter(times, isFarAhead ? now : now + Math.max(0, aheadMs));
  const dueAt = isOwnedElsewhere ? Infinity : atOnce ? now : next;
  return { id, ...times, isOwnedElsewhere, dueAt, last: undefined, timer: undefined };
}

function hasSameOwner(entry: Entry, { isOwnedElsewhere = false }: ScheduledProject): boolean {
  return entry.isOwnedElsewhere === isOwnedElsewhere;
}

function planOf({ schedule, timezone }: ScheduledProject): Plan {
  return { schedule: parseSchedule(schedule, timezone), maxIntervalSeconds: undefined };
}

/** The first time after this one at which a project is due, epoch ms. */
export function dueAfter({ plan, jitterMs }: Pick<Entry, 'plan' | 'jitterMs'>, ms: number): number {
  return plan.schedule.nextAfter(ms - jitterMs) + jitterMs;
}

/** Returns the jitter of a project, whole ms in [0, maxJitterMs): derived from the id, so that it is the same after a restart. */
function jitterOf(project: string, maxJitterMs: number): number {
  const digest = hash('sha256', project, 'buffer');
  return Math.floor((digest.readUInt32BE(0) / 2 ** 32) * maxJitterMs);
}
