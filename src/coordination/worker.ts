import { setTimeout as pause } from 'node:timers/promises';
import { StoreError } from '../monitor/errors.ts';
import type { Observer } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import { watchAgreement } from './agreement.ts';
import { inTime } from './in-time.ts';
import type { Beat, Coordinator, OwnedProject, Ownership, WorkerIdentity } from './ports.ts';

/** A lease is renewed so often while it lasts. */
const BEATS_PER_LEASE = 4;
/** How soon a database is asked again that did not answer, at most, ms. */
const RETRY_MS = 1000;
/** How long an answer of the database is waited for, at most, ms; half a lease, if that is less. */
const PATIENCE_MS = 5000;
/** Projects that are claimed by one statement. */
const BATCH = 500;
/** How long a project whose last poll has ended, or which was lost, waits for others that are dealt with together, ms. */
const GATHER_MS = 200;

/** What has become of the projects of this worker. */
interface OwnershipChange {
  /** It owns them from now on. */
  readonly taken: readonly OwnedProject[];
  /** It owns them no more: what still runs for them may change nothing. */
  readonly dropped: readonly string[];
}

/** One of several equal workers that share projects. */
export interface Worker {
  /** Makes these the projects that it may own; others that it owns are given back. */
  configure(projects: readonly string[]): void;
  /** Joins the others. @throws {StoreError} */
  start(): Promise<void>;
  /**
   * Gives everything back, each project as soon as no poll of it runs, and leaves once that is done and `work` has ended:
   * until then the lease is renewed. Never rejects, unless `work` does.
   */
  stop(work?: Promise<void>): Promise<void>;
  /** It owns the project, its lease holds, and the database answers. */
  mayPoll(project: string): boolean;
  /** A commit of this project was refused: somebody else owns it. */
  lost(project: string): void;
  /** The lease holds, and the database answers. */
  isConnected(): boolean;
  /** Which of its leases holds, a number that no other of them has; undefined if none does. */
  lease(): number | undefined;
  /** Workers whose lease holds, this one among them. */
  live(): number;
  reading(): WorkerReading;
}

/** Values for docs/metrics.md#workers. */
interface WorkerReading {
  /** That it owns. */
  readonly projects: number;
  /** Epoch ms; undefined before the first lease. */
  readonly leaseExpiresAt: number | undefined;
}

export interface WorkerOptions {
  /** Unique among all processes that ever were. */
  readonly id: string;
  readonly version: string;
  /** Of the configuration; empty if others need not agree with it, nor count on this worker for a share. */
  readonly configDigest: () => string;
  readonly leaseMs: number;
  readonly coordinator: Omit<Coordinator, 'grant' | 'owner'>;
  readonly ownership: Pick<Ownership, 'own' | 'disown' | 'flush'>;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Is told `worker.claimed`, `worker.released`, `worker.lease_lost` and `worker.config_differs`. */
  readonly emit: Observer;
  /** Told whenever other projects may be polled than before. */
  readonly onChange: (change: OwnershipChange) => void;
  /** How many of its projects it should own when so many workers have its configuration; by default its fair share. */
  readonly share?: (projects: number, workers: number) => number;
  /** Settles when no poll of the project runs any more; undefined if none does. */
  readonly running: (project: string) => Promise<unknown> | undefined;
  /** Told of errors that are none of the store. */
  readonly onError: (error: unknown) => void;
}

const NOTHING: OwnershipChange = { taken: [], dropped: [] };

/**
 * Holds a lease, and as long as it holds takes projects up to a fair share. A lease that was lost never comes back: the
 * next one begins with nothing, and answers to what was asked under an earlier one count for nothing.
 */
export function createWorker(options: WorkerOptions): Worker {
  const { id, version, configDigest, leaseMs, clock, emit, onChange, running } = options;
  const { coordinator, ownership, share = fairShare } = options;
  const beatMs = leaseMs / BEATS_PER_LEASE;
  const patienceMs = Math.min(PATIENCE_MS, leaseMs / 2);
  const noteConfigurations = watchAgreement({ id, clock, emit });
  let configured: ReadonlySet<string> = new Set();
  const owned = new Set<string>();
  /** Owned still, but not polled any more: each is given back once its last poll has ended. */
  const leaving = new Set<string>();
  const releases = new Set<Promise<void>>();
  /** Goes up with each lease. */
  let term = 0;
  /** Monotonic ms; undefined without a lease. */
  let heldUntil: number | undefined;
  let expiresAt: number | undefined;
  let live = 1;
  /** Those of them that have this configuration, and can take what is not this worker's. */
  let alike = 1;
  let answers = false;
  let state: 'new' | 'running' | 'stopping' | 'stopped' = 'new';
  let nextBeat: NodeJS.Timeout | undefined;
  let afterLosses: NodeJS.Timeout | undefined;
  let expiry: NodeJS.Timeout | undefined;
  let beating: Promise<void> | undefined;

  /** Asked before each poll, as a process that was stopped wakes up with timers in any order. */
  function holds(): boolean {
    if (heldUntil !== undefined && clock.monotonic() >= heldUntil) lose();
    return heldUntil !== undefined;
  }

  function lose(): void {
    const dropped = [...owned, ...leaving];
    for (const project of dropped) ownership.disown(project);
    owned.clear();
    leaving.clear();
    clearTimeout(expiry);
    heldUntil = undefined;
    emit({ type: 'worker.lease_lost', worker: id, projects: dropped.length, owned: 0 });
    term += 1;
    onChange({ taken: [], dropped });
  }

  async function beat(): Promise<void> {
    const asked = term;
    if (holds()) {
      const renewed = await inTime(coordinator.beat(identity()), patienceMs);
      if (asked !== term) return;
      if (renewed !== undefined) return await go(renewed);
      lose();
    }
    await go(await inTime(coordinator.join(identity()), patienceMs));
  }

  /** One that stops takes no share any more. */
  function identity(): WorkerIdentity {
    return { id, version, configDigest: state === 'stopping' ? '' : configDigest() };
  }

  async function go({ lease, workers, owned: known }: Beat): Promise<void> {
    if (state === 'stopped') return;
    const { configDigest: digest } = identity();
    live = workers.length;
    alike = workers.filter((one) => one.id === id || one.configDigest === digest).length;
    heldUntil = lease.until;
    ({ expiresAt } = lease);
    clearTimeout(expiry);
    // A process that was stopped may read the answer too late.
    if (!holds()) return;
    expiry = setTimeout(holds, heldUntil - clock.monotonic());
    noteAnswer(true);
    noteConfigurations(workers, digest);
    if (known > owned.size + leaving.size && releases.size === 0) await releaseStrays();
    await balance();
  }

  /** What the database has as its own and it has not: the answer to a claim was lost, or a commit was refused. */
  async function releaseStrays(): Promise<void> {
    const strays = configured.difference(owned).difference(leaving);
    await inTime(coordinator.release(id, [...strays]), patienceMs);
  }

  function noteAnswer(next: boolean): void {
    if (answers === next) return;
    answers = next;
    onChange(NOTHING);
  }

  /** Gives back what is too much and takes what is too little. */
  async function balance(): Promise<void> {
    if (state !== 'running') return;
    const due = share(configured.size, alike);
    const foreign = owned.values().filter((project) => !configured.has(project));
    const surplus = owned
      .values()
      .filter((project) => configured.has(project))
      .drop(due);
    giveBack([...foreign, ...surplus]);
    while (owned.size < due) {
      const asked = term;
      const free = configured
        .values()
        .filter((project) => !owned.has(project))
        .toArray();
      const most = Math.min(due - owned.size, BATCH);
      const taken = await inTime(coordinator.claim(id, free, most), patienceMs);
      if (taken.length === 0 || asked !== term) return;
      for (const { project, epoch } of taken) {
        owned.add(project);
        ownership.own(project, epoch);
      }
      emit({ type: 'worker.claimed', worker: id, projects: taken.length, owned: owned.size });
      onChange({ taken, dropped: [] });
    }
  }

  /** Each as soon as no poll of it runs. */
  function giveBack(projects: readonly string[]): void {
    if (projects.length === 0) return;
    for (const project of projects) {
      owned.delete(project);
      leaving.add(project);
    }
    onChange(NOTHING);
    const asked = term;
    const work = releaseEach(projects).catch((error: unknown) => {
      // They are too many still, or needed again.
      if (asked === term) keep(projects.filter((project) => leaving.has(project)));
      onFailure(error);
    });
    releases.add(work);
    void work.finally(() => releases.delete(work));
  }

  async function releaseEach(projects: readonly string[]): Promise<void> {
    const { idle = [], busy = [] } = Object.groupBy(projects, (project) =>
      running(project) === undefined ? 'idle' : 'busy',
    );
    const ended = new Set<string>();
    const polls = busy.map(async (project) => {
      await running(project);
      ended.add(project);
    });
    await release(idle);
    let released = 0;
    while (released < busy.length) {
      await Promise.race([Promise.all(polls), pause(GATHER_MS)]);
      const next = [...ended];
      ended.clear();
      released += next.length;
      await release(next);
    }
  }

  async function release(projects: readonly string[]): Promise<void> {
    const released = projects.filter((project) => leaving.has(project));
    if (released.length === 0) return;
    const asked = term;
    await inTime(ownership.flush(), patienceMs);
    await inTime(coordinator.release(id, released), patienceMs);
    if (asked !== term) return;
    for (const project of released) {
      leaving.delete(project);
      ownership.disown(project);
    }
    emit({ type: 'worker.released', worker: id, projects: released.length, owned: owned.size });
    onChange({ taken: [], dropped: released });
  }

  function keep(projects: readonly string[]): void {
    for (const project of projects) {
      leaving.delete(project);
      owned.add(project);
    }
    onChange(NOTHING);
  }

  /** The store tells of its own failures. */
  function onFailure(error: unknown): void {
    if (!(error instanceof StoreError)) return options.onError(error);
    noteAnswer(false);
    holds();
  }

  /** Many are lost at a time. */
  function beatSoon(): void {
    afterLosses ??= setTimeout(() => {
      afterLosses = undefined;
      beatNow();
    }, GATHER_MS);
  }

  function beatNow(): void {
    clearTimeout(nextBeat);
    const startedAt = clock.monotonic();
    beating ??= beat()
      .catch(onFailure)
      .finally(() => {
        beating = undefined;
        if (state === 'stopped') return;
        const pauseMs = answers ? beatMs : Math.min(beatMs, RETRY_MS);
        nextBeat = setTimeout(beatNow, Math.max(0, startedAt + pauseMs - clock.monotonic()));
      });
  }

  return {
    configure: (projects) => {
      configured = new Set(projects);
      if (state === 'running') beatNow();
    },
    start: async () => {
      state = 'running';
      await beat();
      nextBeat = setTimeout(beatNow, beatMs);
    },
    stop: async (work) => {
      state = 'stopping';
      await beating;
      if (answers) {
        giveBack([...owned]);
        // It may take long, and others take over what it gives back only once they know.
        beatNow();
      }
      await Promise.all([...releases, work]);
      state = 'stopped';
      clearTimeout(nextBeat);
      clearTimeout(afterLosses);
      clearTimeout(expiry);
      // It may have joined anew.
      await beating;
      // Otherwise the lease runs out by itself.
      if (answers) await inTime(coordinator.leave(id), patienceMs).catch(onFailure);
    },
    mayPoll: (project) => owned.has(project) && answers && holds(),
    lost: (project) => {
      if (!owned.delete(project) && !leaving.delete(project)) return;
      ownership.disown(project);
      onChange({ taken: [], dropped: [project] });
      if (state === 'running') beatSoon();
    },
    isConnected: () => answers && holds(),
    lease: () => (holds() ? term : undefined),
    live: () => live,
    reading: () => ({ projects: owned.size + leaving.size, leaseExpiresAt: expiresAt }),
  };
}

function fairShare(projects: number, workers: number): number {
  return Math.ceil(projects / workers);
}
