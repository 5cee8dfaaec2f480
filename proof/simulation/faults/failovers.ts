import { BEFORE_ARRIVAL_MS } from '../backend.ts';
import type { Simulation } from '../parts.ts';
import { MINUTE, SECOND } from '../scenario.ts';

/** Maximum age of a standby that lacks a commit or a claim, ms: a lease of a minute, renewed before, still holds then. */
const MAX_LAG_MS = 40 * SECOND;
/** Downtime of the workers whose projects another one takes in two claims, ms. */
const MIN_DOWN_MS = 5 * MINUTE;
const MAX_DOWN_MS = 20 * MINUTE;
/** Time between two of their deaths, in leases: more than a beat, so that their leases do not end within the same beat. */
const MIN_BETWEEN = 0.3;
const MAX_BETWEEN = 0.45;

/** Probability that a standby lacks the last reload by which the processes follow a change of the configuration. */
const LACKS_RELOAD = 0.1;
/** Maximum time from the end of that reload until the standby takes over, ms. */
const MAX_FORGETTING_MS = 2 * SECOND;

interface Standby {
  /** Projects whose commits it lacks. */
  readonly behind: Set<string>;
  /** Whether it takes over while a commit of one of them is on its way. */
  readonly meetsCommit: boolean;
  /** Whether it takes over before that, so that a commit computed from the state of the last server goes to it. */
  readonly precedesCommit: boolean;
  /** Worker whose next claim goes to it. */
  readonly precedesClaimOf?: string;
  readonly takeOver: () => void;
}

/** Standbys that take the place of the database, without the last commits, the last claim or the last reload. */
export function createFailovers(simulation: Simulation) {
  const { course, backend, hosts, oracle, watch, rollouts, conditions, endings } = simulation;
  const { kernel } = course;
  /** The standby that takes over next. */
  let standby: Standby | undefined;
  /** When a standby that lacks the next claim takes over; undefined if none is planned. */
  let losesClaim: 'soon after it' | 'at the next claim' | undefined;
  /**
   * Whether a standby is to lack the next commit, and to take over before the one after it. Nothing else is lost, so the
   * leases and ownerships of the workers hold.
   */
  let isAboutToLag = false;
  /** Makes the standby that lacks the current reload take over. */
  let forgetReload: (() => void) | undefined;

  /** Whether the server can have a standby, and none is planned. */
  function mayFollow(): boolean {
    const isAwaited = standby !== undefined || losesClaim !== undefined || isAboutToLag;
    return backend.makeStandby !== undefined && !isAwaited;
  }

  /** Returns the function that replaces the database by a standby with everything that is stored now. */
  function prepare(): (() => void) | undefined {
    const promote = backend.makeStandby?.();
    if (promote === undefined) return undefined;
    const restore = oracle.save();
    return () => {
      // A standby of the replaced server must not take over later.
      standby = undefined;
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
    };
  }

  /** Makes a standby that lacks what is committed from now on. */
  function follow(kind: Omit<Standby, 'behind' | 'takeOver'>): Standby {
    const promote = prepare();
    const takeOver = () => {
      if (standby?.takeOver === takeOver) promote?.();
    };
    standby = { ...kind, behind: new Set(), takeOver };
    return standby;
  }

  /** Makes a standby that lacks the commit being sent. If it does not take over soon, tries again at a later commit. */
  function lag(): void {
    isAboutToLag = false;
    const own = follow({ meetsCommit: true, precedesCommit: true });
    kernel.after(MAX_LAG_MS, () => {
      if (standby !== own) return;
      standby = undefined;
      isAboutToLag = !course.isCalm();
    });
  }

  /** Makes a standby that lacks the claim which is about to be made, and takes over soon after it. */
  function loseClaim(): ((claimed: readonly string[]) => void) | undefined {
    const takeOver = prepare();
    return (
      takeOver &&
      ((claimed) => {
        if (claimed.length === 0) return;
        losesClaim = undefined;
        kernel.after(kernel.between(5, 50), takeOver);
        conditions.slowService();
      })
    );
  }

  /** Makes a standby that lacks the claim which is about to be made, and takes over at the next one of its worker. */
  function loseAtNextClaim(worker: string): (claimed: readonly string[]) => void {
    const own = follow({ meetsCommit: false, precedesCommit: false, precedesClaimOf: worker });
    const forget = () => {
      if (standby === own) standby = undefined;
    };
    return (claimed) => {
      if (claimed.length === 0) return forget();
      losesClaim = undefined;
      kernel.after(MAX_LAG_MS, forget);
    };
  }

  /** Kills all workers but one, one after the other, so that it takes their projects in two claims. */
  function killAllButOne(): void {
    const others = [...hosts];
    others.splice(Math.floor(kernel.random() * others.length), 1);
    let afterMs = 0;
    for (const host of others) {
      course.later(afterMs, () => {
        if (course.isCalm() || host.life?.machine.isPaused() !== false) return;
        void endings.kill(host.life, kernel.between(MIN_DOWN_MS, MAX_DOWN_MS)).catch(course.bug);
      });
      afterMs += kernel.between(MIN_BETWEEN, MAX_BETWEEN) * course.leaseMs;
    }
  }

  return {
    /** Called when the last process to follow a change of the configuration begins its reload, and when it has ended it. */
    reloading: (state: 'begins' | 'ends') => {
      if (state === 'ends') {
        if (forgetReload) course.later(kernel.between(5, MAX_FORGETTING_MS), forgetReload);
        forgetReload = undefined;
        return;
      }
      if (course.isCalm() || !kernel.chance(LACKS_RELOAD)) return;
      if (!mayFollow()) return;
      forgetReload = follow({ meetsCommit: false, precedesCommit: false }).takeOver;
      // The process may die before the end of its reload.
      course.later(3 * MINUTE, forgetReload);
    },
    failOver: () => {
      if (!mayFollow()) return;
      if (kernel.chance(0.3)) {
        losesClaim = kernel.chance(0.5) ? 'at the next claim' : 'soon after it';
        if (losesClaim === 'at the next claim') killAllButOne();
        return;
      }
      const meetsCommit = kernel.chance(0.5);
      if (meetsCommit && kernel.chance(0.5)) {
        isAboutToLag = true;
        return;
      }
      const most = kernel.chance(0.3) ? 30_000 : 3000;
      const { takeOver } = follow({ meetsCommit, precedesCommit: false });
      course.later(meetsCommit ? 3 * MINUTE : kernel.between(10, most), takeOver);
    },
    /** Called when a commit of a project is sent. Returns whether a standby takes over first, so that it gets the commit. */
    committing: (project: string) => {
      if (isAboutToLag) {
        lag();
        return false;
      }
      if (standby?.meetsCommit !== true || !standby.behind.has(project)) return false;
      kernel.after(BEFORE_ARRIVAL_MS, standby.takeOver);
      return standby.precedesCommit;
    },
    committed: (project: string) => {
      standby?.behind.add(project);
    },
    /**
     * Called when a claim of a worker is sent. Returns whether a standby that lacks the worker's previous claim takes over
     * first, so that it gets this claim.
     */
    sendingClaim: (worker: string) => {
      if (standby?.precedesClaimOf !== worker) return false;
      kernel.after(BEFORE_ARRIVAL_MS, standby.takeOver);
      return true;
    },
    /** Called before a claim of a worker is executed. Returns the function to call with the claimed projects. */
    claiming: (worker: string) => {
      if (losesClaim === undefined) return undefined;
      return losesClaim === 'soon after it' ? loseClaim() : loseAtNextClaim(worker);
    },
    /** Drops the standby if it would take over only at a claim or a commit, and plans no other one. */
    end: () => {
      losesClaim = undefined;
      if (standby?.precedesCommit === true || standby?.precedesClaimOf !== undefined) {
        standby = undefined;
      }
      isAboutToLag = false;
    },
  };
}
