import { BEFORE_ARRIVAL_MS } from '../backend.ts';
import type { Simulation } from '../parts.ts';
import { MINUTE, SECOND } from '../scenario.ts';

/** Maximum time for which a standby lacks what is committed, ms: a lease of a minute, renewed before, still holds then. */
const MAX_LAG_MS = 40 * SECOND;

interface Standby {
  /** Projects whose commits it lacks. */
  readonly behind: Set<string>;
  /** Whether it takes over while a commit of one of them is on its way. */
  readonly meetsCommit: boolean;
  readonly takeOver: () => void;
}

/** Standbys that take the place of the database, without what was committed since they were made. */
export function createFailovers(simulation: Simulation) {
  const { course, backend, oracle, watch, rollouts } = simulation;
  const { kernel } = course;
  /** The standby that takes over next. */
  let standby: Standby | undefined;

  function takeOver(promote: () => Promise<void>, restore: ReturnType<typeof oracle.save>): void {
    course.act('failover');
    watch.failedOver();
    simulation.deadLeases.failedOver();
    rollouts.failedOver();
    simulation.receivers.failedOver();
    // Virtual time stands still meanwhile.
    void kernel
      .real(async () => {
        const reader = await backend.openReader();
        const before = await reader.transitions({});
        await promote();
        await restore(reader, before);
        await reader.close();
      })
      .catch(course.bug);
  }

  return {
    failOver: () => {
      const promote = standby === undefined ? backend.makeStandby?.() : undefined;
      if (promote === undefined) return;
      const restore = oracle.save();
      const own: Standby = {
        behind: new Set(),
        meetsCommit: kernel.chance(0.5),
        takeOver: () => {
          if (standby !== own) return;
          standby = undefined;
          takeOver(promote, restore);
        },
      };
      standby = own;
      const most = kernel.chance(0.3) ? MAX_LAG_MS : 3 * SECOND;
      course.later(own.meetsCommit ? 3 * MINUTE : kernel.between(10, most), own.takeOver);
    },
    /** Called when a commit of a project is sent. */
    committing: (project: string) => {
      if (standby?.meetsCommit !== true || !standby.behind.has(project)) return;
      kernel.after(BEFORE_ARRIVAL_MS, standby.takeOver);
    },
    committed: (project: string) => {
      standby?.behind.add(project);
    },
  };
}
