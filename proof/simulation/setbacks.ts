import { hash } from 'node:crypto';
import { JITTER_MS, type Project } from './configuration.ts';
import type { Kernel } from './kernel.ts';
import type { Machine } from './machine.ts';

/** Maximum time before a run to which a clock is set back, ms: more than the second between two beats of the scheduler. */
const BEFORE_RUN_MS = 1500;
/** Number of earlier runs to which a clock is set back. */
const RUNS = 4;
/** Maximum time by which a run may come early by true time, ms: its clock drifts over an interval. */
const EARLY_MS = 250;

/** Sets the clock of a daemon back to just before a run, and expects this run. */
export interface Setbacks {
  /** Called when a run of the project begins, or is skipped because a poll of it runs. */
  ticked(project: string): void;
  /** Called when a poll has ended, perhaps without a request because the service has asked to wait. */
  ended(project: string): void;
  /** Returns by how much the clock is to be set, to just before a run of one of the projects, ms. */
  step(machine: Machine): number;
  /** Called when the clock was set by `ms`. @param isUndisturbed whether nothing has happened to the process since */
  happened(machine: Machine, ms: number, isUndisturbed: (project: string) => boolean): void;
}

export interface SetbacksOptions {
  readonly kernel: Kernel;
  readonly projects: readonly Project[];
  /** Time within which a run that is due has to begin, ms. */
  readonly patienceMs: number;
  readonly fault: (text: string) => void;
}

export function createSetbacks({ kernel, projects, patienceMs, fault }: SetbacksOptions): Setbacks {
  const ticks = new Map<string, number>();
  /** Projects with a run that has sent a request. */
  const running = new Set<string>();

  return {
    ticked: (project) => {
      running.add(project);
      ticks.set(project, kernel.now());
    },
    ended: (project) => {
      if (!running.delete(project)) ticks.set(project, kernel.now());
    },
    step: (machine) => {
      const project = projects[Math.floor(kernel.random() * projects.length)];
      if (project === undefined) return 0;
      const back = Math.floor(kernel.random() * RUNS) * project.periodMs;
      const lastDueAgo = sinceDue(project, machine.clock.now());
      return -lastDueAgo - back - kernel.between(0, BEFORE_RUN_MS);
    },
    happened: (machine, ms, isUndisturbed) => {
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
