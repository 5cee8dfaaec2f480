import type { Backend } from './backend.ts';
import type { Course } from './course.ts';
import { HOUR, MINUTE, SECOND } from './durations.ts';
import type { DatabaseClock } from './faults/database-clock.ts';
import type { WallClocks } from './faults/wall-clocks.ts';
import type { Host, Life } from './hosts.ts';
import type { Oracle } from './oracle.ts';
import type { RequestRate } from './request-rate.ts';
import type { Watch } from './watch.ts';

export const MAX_STOP_MS = 60 * SECOND;
/** Probability that a process dies after a write or an event, with one project. */
const SUDDEN_DEATH = 0.03;
/** Probability that the clock of the database is set back while the lease of a dead worker ends. */
const CLOCK_SET_AT_DEATH = 0.1;
/** Share of a lease after which the others have read its renewal: two beats and a margin. */
const READ = 0.8;
const RENEWALS_PER_LEASE = 4;
/** Deaths of a worker per hour right after a renewal, with the database's clock set back before another worker reads it. */
const DEATHS_AT_RENEWAL_AN_HOUR = 0.15;

/** Ends, pauses and resumes the processes. */
export interface Endings {
  /** Kills the process, compares the store, and starts another one. @param downMs time until the start, random by default */
  kill(own: Life, downMs?: number): Promise<void>;
  /** Sometimes kills the process at once, before anything else happens: between commit and answer, or after an event. */
  dieSometimes(own: Life, probability?: number): void;
  /**
   * Sometimes kills a worker after a renewal that nobody else has read, and sets the database's clock back so far that the
   * lease is longer than any lease can be and does not hold. Half an hour later it would hold again. Its host rests
   * meanwhile: others should get its projects.
   */
  dieAtRenewalSometimes(own: Life): void;
  /** Stops the process in good order, and starts another one unless the run ends. */
  stop(own: Life, end?: 'not the last' | 'last'): Promise<void>;
  /** Sometimes restarts the process within a second, while it waits for something. */
  stopSometimes(own: Life, probability: number): void;
  /** Sometimes restarts a process whose store fails, or works again. */
  restartSoon(own: Life, probability?: number, withinMs?: number): void;
  /** @param clockSet probability that the clock is set meanwhile */
  pause(own: Life, clockSet?: number): void;
  /** Sometimes pauses the process before the answer to its request arrives. */
  pauseSometimes(own: Life, probability: number, isDetail: boolean): void;
}

export interface EndingsOptions {
  readonly course: Course;
  readonly backend: Pick<Backend, 'openReader'>;
  readonly oracle: Pick<Oracle, 'compare'>;
  readonly watch: Pick<Watch, 'troubled' | 'hasTroubleSince' | 'stopped'>;
  readonly requestRate: Pick<RequestRate, 'resumed'>;
  readonly databaseClock: Pick<DatabaseClock, 'setBack'>;
  readonly wallClocks: Pick<WallClocks, 'set'>;
  readonly start: (host: Host) => void;
}

export function createEndings(options: EndingsOptions): Endings {
  const { course, backend, oracle, watch, requestRate, databaseClock, wallClocks, start } = options;
  const { kernel, isShared, isCalm, act, later, fault, bug } = course;
  const usualDeath = SUDDEN_DEATH / course.projects.length / (isShared ? 2 : 1);

  async function compare(isOver: boolean, stopped?: string): Promise<void> {
    await kernel.real(async () => {
      const reader = await backend.openReader();
      try {
        for (const difference of await oracle.compare(reader, isOver, stopped)) fault(difference);
      } finally {
        await reader.close();
      }
    });
  }

  function downtime(): number {
    return kernel.chance(0.2) ? kernel.between(MINUTE, 90 * MINUTE) : kernel.between(10, 5000);
  }

  async function kill(own: Life, downMs = downtime()): Promise<void> {
    act('kill');
    watch.troubled(own.machine.name);
    own.machine.kill();
    own.access.kill();
    own.host.life = undefined;
    if (isShared && kernel.chance(CLOCK_SET_AT_DEATH)) {
      kernel.after(kernel.between(READ * course.leaseMs, course.leaseMs), () =>
        databaseClock.setBack(),
      );
    }
    await compare(false);
    later(downMs, () => start(own.host));
  }

  async function stop(own: Life, end?: 'not the last' | 'last'): Promise<void> {
    act('stop');
    own.steadySince = undefined;
    const startedAt = kernel.now();
    const isStuck = kernel.after(MAX_STOP_MS, () => {
      if (own.machine.isAlive() && own.pausedAt < startedAt) fault('a stop did not end');
    });
    await own.stop?.();
    isStuck();
    if (!own.machine.isAlive()) return;
    if (own.machine.timers() > 0) fault(`${own.machine.timers()} timers are left after a stop`);
    if (own.network.requests() > 0) fault('requests are left after a stop');
    own.machine.kill();
    own.host.life = undefined;
    const { name } = own.machine;
    watch.stopped(name, startedAt);
    await compare(end === 'last', watch.hasTroubleSince(name, startedAt) ? undefined : name);
    if (end === undefined) later(isCalm() ? 10 : downtime(), () => start(own.host));
  }

  function pause(own: Life, clockSet = 0.3): void {
    act('pause');
    own.pausedAt = kernel.now();
    own.machine.pause();
    own.steadySince &&= Infinity;
    const isClockSet = kernel.chance(clockSet);
    watch.troubled(own.machine.name);
    later(kernel.between(SECOND, kernel.chance(0.2) ? HOUR : 30 * SECOND), () => {
      if (isClockSet && own.machine.isAlive()) wallClocks.set(own);
      own.machine.resume();
      own.resumedAt = kernel.now();
      requestRate.resumed(own.pausedAt);
      watch.troubled(own.machine.name);
      own.steadySince &&= kernel.now();
      course.disturbed();
    });
  }

  /** Runs `work` without delay, but as an event of its own, if the process runs then. */
  function soon(own: Life, work: () => void): void {
    kernel.after(0, () => {
      if (own.machine.isAlive() && !own.machine.isPaused()) work();
    });
  }

  function restartSoon(own: Life, probability = 0.25, withinMs = 5 * SECOND): void {
    if (!kernel.chance(probability)) return;
    kernel.after(kernel.between(0, withinMs), () => {
      if (isCalm() || own.steadySince === undefined || own.machine.isPaused()) return;
      if (own.host.life === own) void stop(own).catch(bug);
    });
  }

  return {
    kill,
    dieSometimes: (own, probability = usualDeath) => {
      if (isCalm() || !kernel.chance(probability)) return;
      soon(own, () => void kill(own).catch(bug));
    },
    dieAtRenewalSometimes: (own) => {
      const probability =
        (DEATHS_AT_RENEWAL_AN_HOUR / HOUR) * (course.leaseMs / RENEWALS_PER_LEASE);
      if (isCalm() || !kernel.chance(probability)) return;
      soon(own, () => {
        void kill(own, HOUR).catch(bug);
        databaseClock.setBack(kernel.between(20, 40) * MINUTE);
      });
    },
    stop,
    stopSometimes: (own, probability) => {
      if (!isCalm()) restartSoon(own, probability, SECOND);
    },
    restartSoon,
    pause,
    pauseSometimes: (own, probability, isDetail) => {
      if (isCalm() || !kernel.chance(probability)) return;
      soon(own, () => pause(own, isDetail ? 0.6 : 0.3));
    },
  };
}
