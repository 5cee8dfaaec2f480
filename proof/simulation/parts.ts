import type * as EngineRoom from '../../src/app/engine.ts';
import type * as MaintenanceRoom from '../../src/app/maintenance.ts';
import type * as ReloadRoom from '../../src/app/reload.ts';
import type * as SchedulingRoom from '../../src/app/scheduling.ts';
import type { Config } from '../../src/config/config.ts';
import type * as ErrorsRoom from '../../src/monitor/errors.ts';
import type { MonitorEvent } from '../../src/monitor/events.ts';
import type { StoreReader, TransitionRow } from '../../src/monitor/ports/store.ts';
import type { ServedListing } from '../../src/simulator/answer.ts';
import type { World } from '../../src/simulator/world/world.ts';
import type { ReloadResult } from '../../src/web/reload-result.ts';
import type { Access, Backend, ConfiguredProjects, ReadLease, StoreWeather } from './backend.ts';
import type { Kernel } from './kernel.ts';
import type { Machine } from './machine.ts';
import type { Network, Weather } from './network.ts';
import type { Project } from './scenario.ts';

/** A run with the parts that run, disturb and judge it. Each is made with those before it, and calls the others later. */
export interface Simulation {
  readonly course: Course;
  readonly sources: Sources;
  readonly hosts: readonly Host[];
  readonly world: World;
  readonly backend: Backend;
  readonly conditions: Conditions;
  readonly databaseClock: DatabaseClock;
  /** Time within which a poll that is due has to begin, ms. */
  readonly patienceMs: number;
  oracle: Oracle;
  requestRate: RequestRate;
  setbacks: Setbacks;
  watch: Watch;
  rollouts: Rollouts;
  wallClocks: WallClocks;
  partitions: Partitions;
  deadLeases: DeadLeases;
  rhythm: Rhythm;
  calm: Calm;
  endings: Endings;
  failovers: Failovers;
  outages: Outages;
  /** Starts a process on a host, and another one if its store fails. */
  start: (host: Host) => void;
}

/** State of a run that all of its parts share, with the faults found so far. */
export interface Course {
  readonly kernel: Kernel;
  readonly projects: readonly Project[];
  /** Whether several workers share a database. */
  readonly isShared: boolean;
  readonly leaseMs: number;
  /** Records a difference, and ends the run. */
  readonly fault: (text: string) => void;
  /** Records an error that should not have been thrown. */
  readonly bug: (error: unknown) => void;
  readonly faults: () => readonly string[];
  /** Counts an act on the processes, which can delay polls. */
  readonly act: (name: string) => void;
  readonly acts: () => Readonly<Record<string, number>>;
  /** Records that something happens that can delay polls. */
  readonly disturbed: () => void;
  /** Returns when the last fault that can delay polls began or ended. */
  readonly disturbedAt: () => number;
  /** Runs `work` after `ms`, or when the calm begins. */
  readonly later: (ms: number, work: () => void) => void;
  /** Whether the time without faults has begun. */
  readonly isCalm: () => boolean;
  readonly beginCalm: () => void;
  /** Runs all work that was put off. */
  readonly catchUp: () => void;
}

/** A machine on which one process runs at a time. */
export interface Host {
  readonly name: string;
  /** How far its wall clock is off, ms. */
  wallOffset: number;
  life: Life | undefined;
}

/** A process that runs, starts or stops. */
export interface Life {
  readonly host: Host;
  /** Configuration in force, or in force once the process has started. */
  config: Config;
  /** Virtual time at which it came into force. */
  configuredAt: number;
  isReloading: boolean;
  readonly machine: Machine;
  readonly network: Network;
  readonly access: Access;
  /** Virtual time, ms. */
  readonly startedAt: number;
  /** Undefined until the process has started. */
  stop?: Process['stop'];
  reload?: Process['reload'];
  /** Virtual time at which it began to run undisturbed; Infinity during a pause, undefined while it starts or stops. */
  steadySince: number | undefined;
  pausedAt: number;
  resumedAt: number;
}

/** Functions of the sources under test. */
export interface Sources {
  readonly openEngine: typeof EngineRoom.openEngine;
  readonly createScheduling: typeof SchedulingRoom.createScheduling;
  readonly createReload: typeof ReloadRoom.createReload;
  readonly startMaintenance: typeof MaintenanceRoom.startMaintenance;
  readonly unlessStoreFails: typeof ErrorsRoom.unlessStoreFails;
}

export interface Process {
  /** Applies another configuration, as the daemon does after it has read it. */
  readonly reload: (next: Config) => Promise<ReloadResult>;
  /** Stops the process in good order. */
  readonly stop: () => Promise<void>;
}

/** Current probabilities of faults of network and store. */
export interface Conditions {
  readonly network: () => Weather;
  readonly store: () => StoreWeather;
  /** Whether the store has no phase of trouble. */
  isStoreUsual(): boolean;
  worsenNetwork(): void;
  /** Slows the service for 10 s: polls take longer than others need to claim a project. */
  slowService(): void;
  /** Begins a phase of trouble of the store, up to 10 minutes long. */
  troubleStore(trouble: StoreWeather, onEnd: () => void): void;
  calmStore(): void;
}

/** Phases in which the store fails, or is away. */
export interface Outages {
  /** Makes the store fail now and then, or go away with the next commit. May restart this process, or that of the commit. */
  worsenStore(own: Life): void;
  /** Called when a commit of this process is sent. */
  committing(own: Life): void;
  reloading(own: Life): void;
  /** Keeps the database from going away at the next commit. */
  end(): void;
}

/** Hosts that are cut off from the database, while the others are not. */
export interface Partitions {
  /** Cuts a host off for a while. */
  begin(host: Host): void;
  /**
   * Called when a worker requests a listing. Sometimes cuts its host off meanwhile, so that others take the project, and may
   * give it back before the listing arrives. Returns the time that the listing takes then, ms.
   */
  delayListing(own: Life): number | undefined;
  /** Whether the host is cut off: nothing that it or the database sends now arrives. */
  isCutOff(host: Host): boolean;
}

/** Standbys that take the place of the database, without the last commits, the last claim or the last reload. */
export interface Failovers {
  failOver(): void;
  /** Called when a commit of a project is sent. Returns whether a standby takes over first, so that it gets the commit. */
  committing(project: string): boolean;
  committed(project: string): void;
  /**
   * Called when a claim of a worker is sent. Returns whether a standby that lacks the worker's previous claim takes over
   * first, so that it gets this claim.
   */
  sendingClaim(worker: string): boolean;
  /** Called before a claim of a worker is executed. Returns the function to call with the claimed projects. */
  claiming(worker: string): ((claimed: readonly string[]) => void) | undefined;
  /** Called when the last process to follow a change of the configuration begins its reload, and when it has ended it. */
  reloading(state: 'begins' | 'ends'): void;
  /** Drops the standby if it would take over only at a claim or a commit, and plans no other one. */
  end(): void;
}

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

/** The clock of the database. */
export interface DatabaseClock {
  /** How far it is off, ms. */
  readonly offset: () => number;
  /** Sets the clock back: leases of dead workers would hold again, and places for requests lie in the future. */
  setBack(ms?: number): void;
  /** Whether it was just set back so far that no lease holds before its renewal: a project may have two acting owners. */
  readonly areLeasesDoubted: () => boolean;
}

/** The wall clocks of the hosts, which are set forward and back. */
export interface WallClocks {
  set(own: Life): void;
  /**
   * Returns the maximum time by which a clock was set back since then, ms. Counts only steps of less than an interval: the
   * last tick does not repeat after them.
   */
  setBackSince(at: number, periodMs: number): number;
}

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

/** The configuration as people change it, and the reloads by which the processes follow. */
export interface Rollouts {
  /** Begins to change the configuration. */
  start(): void;
  /** Makes all processes follow the first configuration from now on. */
  end(): void;
  /** Returns the configuration with which a process starts. */
  atStart(host: string): Config;
  /** Called when a process has started, or has sent a request. */
  started(process: Life): void;
  sent(process: Life): void;
  /** Called when the database has changed the configured projects for a process, which may be dead by now. */
  configured(process: Life, change: Omit<ConfiguredProjects, 'added'>): void;
  /** Called when a standby has taken the place of the database, which may have lost changes. */
  failedOver(): void;
  /** Returns the ids of the projects that are configured in the store. */
  stored(): Promise<readonly string[]>;
  /** Whether a project is configured in every process that runs, and none is reloading. */
  isWatched(project: string): boolean;
  /** Whether all processes that run have the same configuration. */
  isAgreed(): boolean;
  /** Whether a failover may have lost configured projects that nobody has configured since. */
  mayLackChanges(): boolean;
}

/** Records everything served and committed, and compares it with what is stored and emitted. */
export interface Oracle {
  /** Records a listing that a process has read whole. */
  read(process: string, listing: ServedListing): void;
  /** Records that a poll of a process is stored. */
  committed(process: string, project: string): void;
  /**
   * Returns the function to call when the store has lost everything from now on, with the rows that it had until then: what
   * it lost must be stored and emitted again.
   */
  save(): (reader: StoreReader, before: readonly TransitionRow[]) => Promise<void>;
  observe(process: string, event: MonitorEvent): void;
  /**
   * Compares the records with the store. Returns the differences.
   * @param isOver whether nothing may be pending after a long time without faults
   * @param stopped process that stopped in good order, and whose store took everything
   */
  compare(reader: StoreReader, isOver: boolean, stopped?: string): Promise<readonly string[]>;
  figures(): { readonly listings: number; readonly moves: number; readonly failures: number };
}

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

/** Checks that no more requests go out than allowed: of a daemon in a second, of all workers in 10 s. */
export interface RequestRate {
  /** Returns the function to call with the address of each request of a process. */
  watch(machine: Machine): (address: string) => void;
  reloading(): void;
  resumed(pausedAt: number): void;
}

/** Checks that each project is polled as often as its schedule says. */
export interface Rhythm {
  started(project: string, machine: Machine): void;
  /** Called when a poll of a project ends. Without a start, it sent no request: the service had asked for a pause. */
  ended(project: string, machine: Machine): void;
  /** Called when a run comes due while a poll runs. */
  overlapped(project: string, machine: Machine): void;
  /** Looks again and again for projects that are due and not polled. */
  check(): void;
}

/**
 * Tracks the leases of workers that have ended, or are cut off from the database. Their projects rest, and so do those that
 * the others leave to them as their share. A worker that has read such a lease deletes it when its time is over, whatever
 * the database's clock does. A lease that a standby brings back, or that is read late, holds until it ends by that clock.
 */
export interface DeadLeases {
  /** Records the leases of all workers, as a process has read them. */
  read(reader: string, leases: readonly ReadLease[]): void;
  /** Returns when a process last read such a lease that holds and that no process is overdue to delete. */
  heldAt(): number;
}

/** Checks that nothing unusual happens in the time without faults, once everything has recovered. */
export interface Calm {
  /** Begins the time without faults, unless it has begun. */
  begin(): void;
  observe(machine: Machine, event: MonitorEvent): void;
  /** Ends the checks, before the processes are stopped. */
  end(): void;
}
