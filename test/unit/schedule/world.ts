import { afterEach, beforeEach, expect, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import type { MonitorEvent } from '../../../src/monitor/events.ts';
import type { PollRun } from '../../../src/monitor/ports/watched-project.ts';
import {
  type ScheduledProject,
  Scheduler,
  type SchedulerOptions,
} from '../../../src/schedule/scheduler.ts';

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
/** Fake time at which every test begins. */
export const START = Date.parse('2025-11-21T10:00:00.250Z');

interface Poll extends PollRun {
  readonly id: string;
  readonly at: number;
  readonly finish: () => void;
}

export interface World {
  scheduler: Scheduler;
  polls: Poll[];
  events: MonitorEvent[];
  errors: unknown[];
  /** Whether polls last until a test finishes them; otherwise they end at once. */
  slow: boolean;
  /** Creates another scheduler that writes to the same lists. */
  create(changes?: Partial<SchedulerOptions>): Scheduler;
}

/** Sets up fake time and a scheduler for each test of a file. No timer may be left. */
export function useWorld(): World {
  const world: World = {
    scheduler: undefined as never,
    polls: [],
    events: [],
    errors: [],
    slow: false,
    create: (changes) =>
      new Scheduler({
        run: (id, run) => {
          const { promise, resolve } = Promise.withResolvers<void>();
          world.polls.push({ ...run, id, at: Date.now(), finish: resolve });
          if (!world.slow) resolve();
          return promise;
        },
        clock: systemClock,
        emit: (event) => world.events.push(event),
        onError: (error) => world.errors.push(error),
        ...changes,
      }),
  };
  beforeEach(() => {
    vi.useFakeTimers({
      toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'],
      now: START,
    });
    Object.assign(world, { polls: [], events: [], errors: [], slow: false });
    world.scheduler = world.create();
  });
  afterEach(() => {
    world.scheduler.stop();
    const timers = vi.getTimerCount();
    vi.useRealTimers();
    expect(timers).toBe(0);
  });
  return world;
}

/** Returns a project that was just polled, by default with a poll every 10 s. */
export function project(id: string, changes: Partial<ScheduledProject> = {}): ScheduledProject {
  const schedule = '*/10 * * * * *';
  return {
    id,
    schedule,
    timezone: 'UTC',
    lastPollAt: START,
    isOwnedElsewhere: false,
    ...changes,
  };
}

export async function pass(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
}

/** Moves the wall clock but not the timers, as if the clock was set or the machine slept. */
export function jump(ms: number): void {
  vi.setSystemTime(Date.now() + ms);
}

export function times(world: World, id: string): readonly string[] {
  return world.polls
    .filter((poll) => poll.id === id)
    .map(({ at }) => new Date(at).toISOString().slice(11));
}

export function missed(world: World, id: string): number {
  return world.events
    .filter((event) => event.type === 'scheduler.missed')
    .filter((event) => event.project === id)
    .reduce((sum, { count }) => sum + count, 0);
}

export function overlapped(world: World, id: string): number {
  return world.events.filter(
    (event) => event.type === 'scheduler.overlapped' && event.project === id,
  ).length;
}
