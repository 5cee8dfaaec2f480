import type { MonitorEvent } from '../../src/monitor/events.ts';
import type { DatabaseClock } from './faults/database-clock.ts';
import type { Life } from './hosts.ts';
import type { Kernel } from './kernel.ts';
import type { Machine } from './machine.ts';

/** Time after a fault of a process or its statements within which another one may repeat its work, ms, plus a lease. */
const TROUBLE_MS = 30_000;
/** How much slower than true time a worker's clock may be during a lease, and the time for which it may be off, ms. */
const CLOCK_TOLERANCE_MS = 10;
/** Time within which a poll whose commit was refused has to be made again: three attempts with all their retries, ms. */
const REPEAT_MS = 60_000;
/** Refusals after which a poll is not made again. */
const MAX_REFUSALS = 3;
/** Time after a failed request within which a worker need not repeat a poll: a beat and its retry, ms. */
const UNANSWERED_MS = 10_000;
/** Time from a failed release to the next beat, ms: less than between two regular beats with the longest leases. */
const MAX_REST_MS = 10_000;
/** Limit of the difference between due times of one run, ms: a timer may fire 1 ms early, and the times are whole. */
const SAME_RUN_MS = 3;
/** Maximum time from a due run to its first request: the longest pause and a margin, ms. */
const MAX_WAIT_MS = 70 * 60_000;

/** Checks the running processes for faults that the store does not show. */
export interface Watch {
  observe(machine: Machine, event: MonitorEvent): void;
  /** Records a fault of this process, of its statements, or of their answers. */
  troubled(process: string): void;
  /** Records that a beat or another request of it has failed: it may skip polls until the next beat. */
  unanswered(process: string): void;
  hasTroubleSince(process: string, at: number): boolean;
  /** Records that a release of its projects has failed. It polls nothing until a beat is answered, and must soon try one. */
  releaseFailed(process: string, life: () => Pick<Life, 'machine' | 'steadySince'>): void;
  /** Records that a beat is sent, or answered. */
  beating(process: string): void;
  /** Records that its lease begins or is renewed in the database. */
  renewed(process: string): void;
  /** Records that it has ended its lease. */
  left(process: string): void;
  /** Checks, after a stop in good order that began at `since`, that the lease has ended: others wait until then. */
  stopped(process: string, since: number): void;
  /** Records a claim of projects. Its worker polls them anew, so no earlier poll of them has to be repeated. */
  claimed(projects: readonly string[]): void;
  /** Records that a reload of its configuration begins or ends. */
  reloaded(process: string): void;
  /** Records a failover. The database lost its last commits: failures are pending again. */
  failedOver(): void;
}

export interface WatchOptions {
  readonly kernel: Kernel;
  /** Length of the workers' leases, ms; undefined without leases. */
  readonly leaseMs: number | undefined;
  readonly periodMs: (project: string) => number;
  readonly databaseClock: Pick<DatabaseClock, 'areLeasesDoubted'>;
  readonly fault: (text: string) => void;
}

export function createWatch(options: WatchOptions): Watch {
  const { kernel, leaseMs, periodMs, databaseClock, fault } = options;
  const troubledAt = new Map<string, number>();
  const unansweredAt = new Map<string, number>();
  let failedOverAt = -Infinity;
  const renewedAt = new Map<string, number>();
  /** When a beat was last sent or answered. */
  const beatAt = new Map<string, number>();
  const tellers = new Map<number, { readonly process: string; readonly at: number }[]>();
  /** Last polls by process and project: when each was due by the clock of the process, and when it started. */
  const starts = new Map<string, { readonly dueAt: number; readonly at: number }>();
  /** Polls that run, by process and project, with the commits that were refused since. */
  const polls = new Map<string, { refusals: number; refusedAt: number }>();

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
    const isDoubted = databaseClock.areLeasesDoubted();
    for (const other of before) {
      const isExcused =
        other.process === process ||
        isDoubted ||
        hasTroubleSince(process, now - troubleMs) ||
        hasTroubleSince(other.process, other.at - troubleMs);
      if (!isExcused) fault(`failure ${transitionId} was told by ${other.process} and ${process}`);
    }
    tellers.set(transitionId, [...before, { process, at: now }]);
  }

  /** Checks that the worker, which still owns the project, repeats a poll whose commit was refused for its version. */
  function refused(process: string, project: string): void {
    const key = `${process} ${project}`;
    const poll = polls.get(key);
    if (poll === undefined) return;
    const refusals = (poll.refusals += 1);
    const at = (poll.refusedAt = kernel.now());
    kernel.after(REPEAT_MS, () => {
      const isSame = polls.get(key) === poll && poll.refusals === refusals;
      if (!isSame || hasTroubleSince(process, at)) return;
      fault(`${project} was not polled again by ${process}, whose commit was refused`);
    });
  }

  /** Drops running polls: no repetition of them is expected. */
  function forget(isMeant: (process: string, project: string) => boolean): void {
    for (const key of polls.keys()) {
      const [process = '', project = ''] = key.split(' ');
      if (isMeant(process, project)) polls.delete(key);
    }
  }

  /** Checks that the next run begins only after the poll of the last one was repeated, or refused for the last time. */
  function checkRepeated(process: string, project: string): void {
    const { refusals = 0, refusedAt = 0 } = polls.get(`${process} ${project}`) ?? {};
    if (refusals === 0 || refusals >= MAX_REFUSALS || hasTroubleSince(process, refusedAt)) return;
    if ((unansweredAt.get(process) ?? -Infinity) >= refusedAt - UNANSWERED_MS) return;
    fault(`${project} was not polled again by ${process}, whose commit was refused`);
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
    checkRepeated(machine.name, project);
    polls.set(key, { refusals: 0, refusedAt: -Infinity });
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
    return leaseMs === undefined ? setBackMs < periodMs(project) : setBackMs === 0;
  }

  return {
    observe: (machine, event) => {
      if (event.type === 'prompt.failed') told(machine.name, event.transitionId);
      else if (event.type === 'scheduler.started_poll') {
        started(machine, event.project, event.lagMs);
      } else if (event.type === 'poll.finished') {
        polls.delete(`${machine.name} ${event.project}`);
      } else if (event.type === 'store.commit_refused') {
        if (event.reason === 'version') refused(machine.name, event.project);
        // It does not own the project any more.
        else polls.delete(`${machine.name} ${event.project}`);
      } else if (event.type === 'worker.released') {
        forget((process) => process === machine.name);
      } else if (event.type === 'store.commit_failed' || event.type === 'worker.lease_lost') {
        troubledAt.set(machine.name, kernel.now());
      }
    },
    troubled: (process) => {
      troubledAt.set(process, kernel.now());
    },
    unanswered: (process) => {
      unansweredAt.set(process, kernel.now());
    },
    hasTroubleSince,
    releaseFailed: (process, life) => {
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
    beating: (process) => {
      beatAt.set(process, kernel.now());
    },
    renewed: (process) => {
      renewedAt.set(process, kernel.now());
    },
    left: (process) => {
      renewedAt.delete(process);
    },
    stopped: (process, since) => {
      if (!renewedAt.delete(process) || leaseMs === undefined) return;
      // A worker that had no answer does not try to end its lease.
      const from = since - TROUBLE_MS - leaseMs;
      const isExcused =
        hasTroubleSince(process, from) || (unansweredAt.get(process) ?? -Infinity) >= from;
      if (!isExcused) fault(`${process} was stopped and has kept its lease`);
    },
    claimed: (projects) => {
      forget((_, project) => projects.includes(project));
    },
    reloaded: (process) => forget((other) => other === process),
    failedOver: () => {
      failedOverAt = kernel.now();
      tellers.clear();
    },
  };
}
