import type { Life, Simulation } from '../parts.ts';
import { HOUR, MINUTE, SECOND } from '../scenario.ts';

export const MAX_STOP_MS = 60 * SECOND;
/** Probability that a process dies after a write or an event, with one project. */
const SUDDEN_DEATH = 0.03;
/** Ends, pauses and resumes the processes. */
export function createEndings(simulation: Simulation) {
  const { course, backend, oracle, watch, wallClocks } = simulation;
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

  /** Kills the process, compares the store, and starts another one. */
  async function kill(own: Life): Promise<void> {
    act('kill');
    watch.troubled(own.machine.name);
    own.machine.kill();
    own.access.kill();
    own.host.life = undefined;
    await compare(false);
    later(downtime(), () => simulation.start(own.host));
  }

  /** Stops the process in good order, and starts another one unless the run ends. */
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
    await compare(end === 'last', watch.hasTroubleSince(name, startedAt) ? undefined : name);
    if (end === undefined) later(isCalm() ? 10 : downtime(), () => simulation.start(own.host));
  }

  /** @param clockSet probability that the clock is set meanwhile */
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

  /** Sometimes restarts a process whose store fails, or works again. */
  function restartSoon(own: Life, probability = 0.25, withinMs = 5 * SECOND): void {
    if (!kernel.chance(probability)) return;
    kernel.after(kernel.between(0, withinMs), () => {
      if (isCalm() || own.steadySince === undefined || own.machine.isPaused()) return;
      if (own.host.life === own) void stop(own).catch(bug);
    });
  }

  return {
    kill,
    /** Sometimes kills the process at once, before anything else happens: between commit and answer, or after an event. */
    dieSometimes: (own: Life, probability = usualDeath) => {
      if (isCalm() || !kernel.chance(probability)) return;
      soon(own, () => void kill(own).catch(bug));
    },
    stop,
    /** Sometimes restarts the process within a second, while it waits for something. */
    stopSometimes: (own: Life, probability: number) => {
      if (!isCalm()) restartSoon(own, probability, SECOND);
    },
    restartSoon,
    pause,
    /** Sometimes pauses the process before the answer to its request arrives. */
    pauseSometimes: (own: Life, probability: number, isDetail: boolean) => {
      if (isCalm() || !kernel.chance(probability)) return;
      soon(own, () => pause(own, isDetail ? 0.6 : 0.3));
    },
  };
}

/** Mean time between two faults where one host runs, minutes. */
const MEAN_INTERVAL_MINUTES = 25;

/**
 * Begins to disturb the hosts from time to time, until the calm.
 * @param pick draws when a fault comes, which one, and where
 */
export function startDisturbances(simulation: Simulation, pick: () => number): void {
  const { course, hosts, endings, wallClocks } = simulation;
  const { kernel, isShared, bug } = course;

  /** Returns the kind of fault that a random number stands for. */
  function faultOf(drawn: number) {
    if (drawn < 0.3) return 'kill';
    if (drawn < 0.4) return 'stop';
    if (drawn < 0.6) return 'pause';
    if (drawn < 0.7) return 'clock set';
    if (drawn < 0.85) return 'bad network';
    if (!isShared || drawn < 0.9) return 'bad store';
    return drawn < 0.93 ? 'partition' : 'failover';
  }

  function disturb(): void {
    if (course.isCalm()) return;
    const [wait, place, drawn] = [pick(), pick(), pick()];
    const minutes = -Math.log(1 - wait) * MEAN_INTERVAL_MINUTES;
    kernel.after((minutes * MINUTE) / (2 * hosts.length - 1), disturb);
    const own = hosts[Math.floor(place * hosts.length)]?.life;
    const kind = faultOf(drawn);
    if (own === undefined || own.machine.isPaused()) return;
    if (kind === 'kill') void endings.kill(own).catch(bug);
    else if (kind === 'stop') {
      if (own.steadySince !== undefined) void endings.stop(own).catch(bug);
    } else if (kind === 'pause') endings.pause(own);
    else if (kind === 'clock set') {
      wallClocks.set(own);
    } else if (kind === 'bad network') simulation.conditions.worsenNetwork();
    else if (kind === 'failover') simulation.failovers.failOver();
    else if (kind === 'partition') simulation.partitions.begin(own.host);
    else simulation.outages.worsenStore(own);
  }

  disturb();
}
