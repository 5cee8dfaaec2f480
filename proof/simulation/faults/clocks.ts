import { hash } from 'node:crypto';
import type { Machine } from '../machine.ts';
import type { Life, Simulation } from '../parts.ts';
import { HOUR, JITTER_MS, MINUTE, type Project } from '../scenario.ts';

/** The wall clocks of the hosts, which are set forward and back. */
export function createWallClocks({ course, hosts, setbacks, rollouts, conditions }: Simulation) {
  const { kernel, isShared } = course;

  return {
    set: (own: Life) => {
      course.act('clock set');
      const isBeforeRun = !isShared && kernel.chance(0.5);
      const most = kernel.chance(0.5) ? 3 * HOUR : 2 * MINUTE;
      const ms = isBeforeRun ? setbacks.step(own.machine) : kernel.between(-1, 1) * most;
      kernel.note(`${own.machine.name} set its clock by ${Math.round(ms)} ms`);
      own.host.wallOffset += ms;
      own.machine.jump(ms);
      own.steadySince &&= kernel.now();
      const since = own.steadySince;
      if (isShared || since === undefined) return;
      setbacks.happened(own.machine, ms, (project) => {
        const isSame = own.host.life === own && own.steadySince === since;
        return isSame && rollouts.isWatched(project) && conditions.isStoreUsual();
      });
    },
    /**
     * Returns the maximum time by which a clock was set back since then, ms. Counts only steps of less than an interval: the
     * last tick does not repeat after them.
     */
    setBackSince: (at: number, periodMs: number) => {
      const setBacks = hosts.map(({ life }) => {
        const recent = life?.machine.setBacksSince(at) ?? [];
        return recent.reduce((total, { ms }) => (ms < periodMs ? total + ms : total), 0);
      });
      return Math.max(...setBacks);
    },
  };
}

/** Maximum time before a run to which a clock is set back, ms: more than the second between two beats of the scheduler. */
const BEFORE_RUN_MS = 1500;
/** Number of earlier runs to which a clock is set back. */
const RUNS = 4;
/** Maximum time by which a run may come early by true time, ms: its clock drifts over an interval. */
const EARLY_MS = 250;

/** Sets the clock of a daemon back to just before a run, and expects this run. */
export function createSetbacks({ course, patienceMs }: Simulation) {
  const { kernel, projects, fault } = course;
  const ticks = new Map<string, number>();
  /** Projects with a run that has sent a request. */
  const running = new Set<string>();

  return {
    /** Called when a run of the project begins, or is skipped because a poll of it runs. */
    ticked: (project: string) => {
      running.add(project);
      ticks.set(project, kernel.now());
    },
    /** Called when a poll has ended, perhaps without a request because the service has asked to wait. */
    ended: (project: string) => {
      if (!running.delete(project)) ticks.set(project, kernel.now());
    },
    /** Returns by how much the clock is to be set, to just before a run of one of the projects, ms. */
    step: (machine: Machine) => {
      const project = projects[Math.floor(kernel.random() * projects.length)];
      if (project === undefined) return 0;
      const back = Math.floor(kernel.random() * RUNS) * project.periodMs;
      const lastDueAgo = sinceDue(project, machine.clock.now());
      return -lastDueAgo - back - kernel.between(0, BEFORE_RUN_MS);
    },
    /** Called when the clock was set by `ms`. @param isUndisturbed whether nothing has happened to the process since */
    happened: (machine: Machine, ms: number, isUndisturbed: (project: string) => boolean) => {
      const wall = machine.clock.now();
      for (const project of projects) {
        const { id, periodMs } = project;
        // The last run is not repeated within an interval, and another run hides one that is lost.
        if (-ms < periodMs || periodMs <= patienceMs) continue;
        const dueAt = kernel.now() + periodMs - sinceDue(project, wall);
        kernel.after(dueAt + patienceMs - kernel.now(), () => {
          if ((ticks.get(id) ?? -Infinity) >= dueAt - EARLY_MS || !isUndisturbed(id)) return;
          fault(`${id} was due after the clock was set back, and is not polled`);
        });
      }
    },
  };
}

/** Returns the time since the last run, by the clock, ms. */
function sinceDue({ id, periodMs }: Project, wall: number): number {
  const share = hash('sha256', id, 'buffer').readUInt32BE(0) / 2 ** 32;
  return (wall - Math.floor(share * JITTER_MS)) % periodMs;
}
