import { limitConcurrency } from '../concurrency/limit-concurrency.ts';
import type { ProjectConfig } from '../config/config.ts';
import type { OwnershipChange } from '../coordination/worker.ts';
import type { FinishedPoll } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { PollRun } from '../monitor/ports/watched-project.ts';
import { type ScheduledProject, Scheduler } from '../schedule/scheduler.ts';
import type { Engine } from './engine.ts';
import type { Heartbeat } from './heartbeat.ts';
import { endProcess } from './process.ts';

export interface Scheduling extends Pick<
  Scheduler,
  'next' | 'schedule' | 'start' | 'stop' | 'idle'
> {
  /** Schedules the configured projects. Projects that another worker owns get a schedule but are not polled. */
  apply(): void;
  /**
   * Polls a project outside of its schedule. A scheduled run that comes due meanwhile starts after this poll. Resolves to
   * undefined if a poll of the project runs, after `stop`, and as {@link Engine.poll} does.
   */
  pollNow(project: string): Promise<FinishedPoll | undefined>;
  /** Whether a poll of the project runs, by its schedule or on request. */
  isPolling(project: string): boolean;
}

/**
 * Maximum number of healthy projects' polls that wait for their first request, each with some 12 KB of memory; one that has
 * not begun needs 3 KB. Thousands are due at once after a start, a takeover, or a failure of the database.
 */
const MAX_WAITING = 1000;

/** Creates the scheduler of the engine's projects. `heartbeat` watches its runs. */
export function createScheduling(engine: Engine, clock: Clock, heartbeat?: Heartbeat): Scheduling {
  /** Polls on request that run. */
  const requested = new Map<string, Promise<FinishedPoll | undefined>>();
  let isStopped = false;
  /** Polls that wait for their first request; called when they get it. */
  const waiting = new Map<string, () => void>();
  const limited = limitConcurrency(MAX_WAITING);
  const pollAfterRequested = async (id: string, run: PollRun) => {
    await requested.get(id);
    return isStopped ? undefined : await engine.poll(id, run);
  };
  /** Begins a poll once fewer others wait. That of a failing project begins at once: it may wait longer for its request. */
  const poll = async (id: string, run: PollRun) => {
    if ((engine.health(id)?.consecutiveFailures ?? 0) > 0) return await pollAfterRequested(id, run);
    const { polling } = await limited(async () => {
      const firstRequest = Promise.withResolvers<void>();
      waiting.set(id, firstRequest.resolve);
      const begun = pollAfterRequested(id, run);
      await Promise.race([begun, firstRequest.promise]);
      waiting.delete(id);
      return { polling: begun };
    });
    return await polling;
  };
  engine.observe((event) => {
    if (event.type === 'scheduler.started_poll') waiting.get(event.project)?.();
  });
  const scheduler = new Scheduler({
    clock,
    emit: engine.emit,
    mayRun: (id) => engine.mayPoll(id),
    run: async (id, run) => {
      const polling = poll(id, run);
      void heartbeat?.watch(id, run, polling);
      await polling;
    },
    onError: endProcess,
  });
  const isPolling = (id: string) => scheduler.isRunning(id) || requested.has(id);
  const toScheduled = ({ id, schedule, timezone }: ProjectConfig): ScheduledProject => ({
    id,
    schedule,
    timezone,
    lastPollAt: engine.health(id)?.lastPollAt,
    isOwnedElsewhere: !engine.mayPoll(id),
  });
  const apply = () => {
    const { projects, jitterMs } = engine.config();
    scheduler.set(projects.map(toScheduled), jitterMs);
  };
  const update = (changed: readonly string[] | undefined) => {
    if (changed === undefined) return apply();
    const projects = changed.map((id) => engine.projects().get(id));
    scheduler.update(projects.filter((project) => project !== undefined).map(toScheduled));
  };
  engine.sharing?.onOwnershipChange(gatherChanges(update));
  return {
    next: (id) => scheduler.next(id),
    schedule: (id) => scheduler.schedule(id),
    apply,
    isPolling,
    pollNow: async (id) => {
      if (isStopped || isPolling(id)) return undefined;
      const polling = engine.poll(id, { dueAt: clock.now(), nextAt: undefined });
      requested.set(id, polling);
      try {
        return await polling;
      } finally {
        requested.delete(id);
      }
    },
    start: () => scheduler.start(),
    stop: () => {
      isStopped = true;
      scheduler.stop();
    },
    idle: async () => {
      await Promise.allSettled([scheduler.idle(), ...requested.values()]);
    },
  };
}

/**
 * Returns a function that gathers changes of ownership, and in the next turn of the event loop calls `listener` once with the
 * projects that were taken or dropped; with undefined if a change names none, because then any project may be affected.
 */
export function gatherChanges(
  listener: (changed: readonly string[] | undefined) => void,
): (change: OwnershipChange) => void {
  /** The names in each change since the last call. */
  let changes: (readonly string[])[] = [];

  function deliver(): void {
    const names = changes.some((named) => named.length === 0) ? undefined : changes.flat();
    changes = [];
    listener(names && [...new Set(names)]);
  }

  return ({ taken, dropped }) => {
    if (changes.length === 0) setImmediate(deliver);
    changes.push([...taken.map(({ project }) => project), ...dropped]);
  };
}
