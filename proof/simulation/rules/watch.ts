import type { MonitorEvent } from '../../../src/monitor/events.ts';
import type { Kernel } from '../kernel.ts';
import type { Machine } from '../machine.ts';
import type { Life, Simulation } from '../parts.ts';
import { MAX_REQUESTS_PER_SECOND, MINUTE, SECOND } from '../scenario.ts';

/** Time after a fault of a process or its statements within which another one may repeat its work, ms, plus a lease. */
const TROUBLE_MS = 30_000;
/** How much slower than true time a worker's clock may be during a lease, and the time for which it may be off, ms. */
const CLOCK_TOLERANCE_MS = 10;
/** Time within which a poll whose commit was refused has to be made again, ms. */
const REPEAT_MS = 60_000;
/** Time after a failed request within which a worker need not repeat a poll: a beat and its retry, ms. */
const UNANSWERED_MS = 10_000;
/** Time from a failed release to the next beat, ms: less than between two regular beats with the longest leases. */
const MAX_REST_MS = 10_000;
/** Limit of the difference between due times of one run, ms: a timer may fire 1 ms early, and the times are whole. */
const SAME_RUN_MS = 3;
/** Maximum time from a due run to its first request: the longest pause and a margin, ms. */
const MAX_WAIT_MS = 70 * 60_000;

/** Checks the running processes for faults that the store does not show. */
export function createWatch(simulation: Simulation) {
  const { kernel, isShared, projects, fault, bug } = simulation.course;
  /** Length of the workers' leases, ms; undefined without leases. */
  const leaseMs = isShared ? simulation.course.leaseMs : undefined;
  const troubledAt = new Map<string, number>();
  const unansweredAt = new Map<string, number>();
  let failedOverAt = -Infinity;
  const renewedAt = new Map<string, number>();
  /** When a beat was last sent or answered. */
  const beatAt = new Map<string, number>();
  const tellers = new Map<number, { readonly process: string; readonly at: number }[]>();
  /** Last polls by process and project: when each was due by the clock of the process, and when it started. */
  const starts = new Map<string, { readonly dueAt: number; readonly at: number }>();
  /** Polls that run, or whose commit was refused, by process and project. */
  const polls = new Map<string, object>();

  function hasTroubleSince(process: string, at: number): boolean {
    return Math.max(troubledAt.get(process) ?? -Infinity, failedOverAt) >= at;
  }

  function told(process: string, transitionId: number): void {
    const now = kernel.now();
    if (leaseMs === undefined) return;
    const until = (renewedAt.get(process) ?? -Infinity) + leaseMs + CLOCK_TOLERANCE_MS;
    if (now > until) fault(`failure ${transitionId} was told by ${process}, which has no lease`);
    const before = tellers.get(transitionId) ?? [];
    const troubleMs = TROUBLE_MS + leaseMs;
    for (const other of before) {
      const isExcused =
        other.process === process ||
        hasTroubleSince(process, now - troubleMs) ||
        hasTroubleSince(other.process, other.at - troubleMs);
      if (!isExcused) fault(`failure ${transitionId} was told by ${other.process} and ${process}`);
    }
    tellers.set(transitionId, [...before, { process, at: now }]);
  }

  /** Checks that a project whose commit was refused is polled again, unless another worker claims it. */
  function refused(process: string, project: string): void {
    const key = `${process} ${project}`;
    const poll = polls.get(key);
    if (poll === undefined) return;
    const { rollouts } = simulation;
    const at = kernel.now();
    const expectRepetition = () => {
      kernel.after(REPEAT_MS, () => {
        const isWatched = rollouts.isWatched(project);
        if (polls.get(key) !== poll || !isWatched || hasTroubleSince(process, at)) return;
        if ((unansweredAt.get(process) ?? -Infinity) >= at - UNANSWERED_MS) return;
        fault(`${project} was not polled again by ${process}, whose commit was refused`);
      });
    };
    if (!rollouts.mayLackChanges()) return expectRepetition();
    // Nobody can take a project that the database has lost with a reload: the workers configure it again later.
    void rollouts.stored().then((ids) => ids.includes(project) && expectRepetition(), bug);
  }

  /** Drops running polls: no repetition of them is expected. */
  function forget(isMeant: (process: string, project: string) => boolean): void {
    for (const key of polls.keys()) {
      const [process = '', project = ''] = key.split(' ');
      if (isMeant(process, project)) polls.delete(key);
    }
  }

  /** Checks that a run is started once, unless the clock was set back by an interval or more. */
  function started(machine: Machine, project: string, lagMs: number): void {
    const key = `${machine.name} ${project}`;
    const dueAt = machine.clock.now() - lagMs;
    const last = starts.get(key);
    if (last !== undefined && isRepeated(machine, project, dueAt, last)) {
      fault(`a run of ${project} was started twice by ${machine.name}`);
    }
    starts.set(key, { dueAt, at: kernel.now() });
    polls.set(key, {});
  }

  /**
   * Whether this is the run that was started last. An immediate poll at a start is no run of the schedule. A worker whose
   * clock was set back takes its own last poll for one of a worker whose clock is ahead, and may repeat it.
   */
  function isRepeated(
    machine: Machine,
    project: string,
    dueAt: number,
    last: { readonly dueAt: number; readonly at: number },
  ): boolean {
    if (Math.abs(dueAt - last.dueAt) >= SAME_RUN_MS) return false;
    const setBacks = machine.setBacksSince(last.at - MAX_WAIT_MS);
    const setBackMs = setBacks.reduce((total, { ms }) => total + ms, 0);
    return leaseMs === undefined
      ? setBackMs < (projects.find(({ id }) => id === project)?.periodMs ?? 0)
      : setBackMs === 0;
  }

  return {
    observe: (machine: Machine, event: MonitorEvent) => {
      if (event.type === 'prompt.failed') told(machine.name, event.transitionId);
      else if (event.type === 'scheduler.started_poll') {
        started(machine, event.project, event.lagMs);
      } else if (event.type === 'poll.finished') {
        polls.delete(`${machine.name} ${event.project}`);
      } else if (event.type === 'store.commit_refused') {
        refused(machine.name, event.project);
      } else if (event.type === 'worker.released') {
        forget((process) => process === machine.name);
      } else if (event.type === 'store.commit_failed' || event.type === 'worker.lease_lost') {
        troubledAt.set(machine.name, kernel.now());
      }
    },
    /** Records a fault of this process, of its statements, or of their answers. */
    troubled: (process: string) => {
      troubledAt.set(process, kernel.now());
    },
    /** Records that a beat or another request of it has failed: it may skip polls until the next beat. */
    unanswered: (process: string) => {
      unansweredAt.set(process, kernel.now());
    },
    hasTroubleSince,
    /** Records that a release of its projects has failed. It polls nothing until a beat is answered, and must soon try one. */
    releaseFailed: (process: string, life: () => Pick<Life, 'machine' | 'steadySince'>) => {
      const at = kernel.now();
      const { steadySince } = life();
      kernel.after(MAX_REST_MS, () => {
        // It has neither ended, begun to stop nor been paused, and no other request has delayed a beat.
        const own = life();
        const isSame = steadySince !== undefined && own.steadySince === steadySince;
        const isAlone = unansweredAt.get(process) === at;
        if (!own.machine.isAlive() || !isSame || !isAlone) return;
        if ((beatAt.get(process) ?? -Infinity) >= at) return;
        fault(`${process} has rested since a release of its projects failed`);
      });
    },
    /** Records that a beat is sent, or answered. */
    beating: (process: string) => {
      beatAt.set(process, kernel.now());
    },
    /** Records that its lease begins or is renewed in the database. */
    renewed: (process: string) => {
      renewedAt.set(process, kernel.now());
    },
    /** Records that it has ended its lease. */
    left: (process: string) => {
      renewedAt.delete(process);
    },
    /** Checks, after a stop in good order that began at `since`, that the lease has ended: others wait until then. */
    stopped: (process: string, since: number) => {
      if (!renewedAt.delete(process) || leaseMs === undefined) return;
      // A worker that had no answer does not try to end its lease.
      const from = since - TROUBLE_MS - leaseMs;
      const isExcused =
        hasTroubleSince(process, from) || (unansweredAt.get(process) ?? -Infinity) >= from;
      if (!isExcused) fault(`${process} was stopped and has kept its lease`);
    },
    /** Records a claim of projects. Its worker polls them anew, so no earlier poll of them has to be repeated. */
    claimed: (claimed: readonly string[]) => {
      forget((_, project) => claimed.includes(project));
    },
    /** Records that a reload of its configuration begins or ends, or that it begins to stop: it need not repeat a poll. */
    interrupted: (process: string) => forget((other) => other === process),
    /** Records a failover. The database lost its last commits: failures are pending again. */
    failedOver: () => {
      failedOverAt = kernel.now();
      tellers.clear();
    },
  };
}

/** Checks that no more requests go out than allowed: of a daemon in a second, of all workers in 10 s. */
export function createRequestRate({ course }: Simulation) {
  const { kernel, isShared, fault } = course;
  const countShared = isShared ? countTooMany(kernel) : undefined;
  let reloadedAt = -Infinity;

  return {
    /** Returns the function to call with the address of each request of a process. */
    watch: (machine: Machine) => {
      const sentTo = new Map<string, number[]>();
      return (address: string) => {
        const tooMany = countShared?.();
        if (tooMany !== undefined) fault(`${tooMany} requests of all workers in 10 s`);
        if (isShared) return;
        // A changed service begins with a limit of its own.
        const sent = sentTo.get(address) ?? [];
        sentTo.set(address, sent);
        // By the clock of its process.
        const at = machine.clock.monotonic();
        sent.push(at);
        while ((sent[0] ?? at) <= at - SECOND) sent.shift();
        // Polls from before a reload keep their limit, and the service before the last one may be back.
        const services = kernel.now() < reloadedAt + MINUTE ? 2 : 1;
        if (sent.length > services * MAX_REQUESTS_PER_SECOND) {
          fault(`${sent.length} requests in a second`);
        }
      };
    },
    reloading: () => {
      reloadedAt = kernel.now();
    },
    resumed: (pausedAt: number) => {
      // Polls from before a reload have waited, too.
      if (pausedAt < reloadedAt + MINUTE) reloadedAt += kernel.now() - pausedAt;
    },
  };
}

/** Returns a function to call at each request of any worker. It returns the number in the last 10 s if that is too high. */
function countTooMany(kernel: Kernel): () => number | undefined {
  const sent: number[] = [];
  return () => {
    const at = kernel.now();
    sent.push(at);
    while ((sent[0] ?? at) <= at - 10 * SECOND) sent.shift();
    return sent.length > 10 * MAX_REQUESTS_PER_SECOND * 1.05 + 1 ? sent.length : undefined;
  };
}
