import { createHash } from 'node:crypto';
import { isPassing, StoreError, type StoreFailureReason } from '../monitor/errors.ts';
import type { FinishedPoll, Observer } from '../monitor/events.ts';
import type { Clock, Timer } from '../monitor/ports/clock.ts';
import type { RateLimit } from '../monitor/ports/service.ts';
import type { Beat, Coordinator, ListedProject, OwnedProject, Ownership } from './ports.ts';
import { SharedRate } from './shared-rate.ts';

/** Number of renewals while a lease lasts. */
const BEATS_PER_LEASE = 4;
/** Maximum interval of beats while the database does not answer, ms. */
const MAX_RETRY_MS = 1000;
/** Maximum wait for an answer of the database, ms; half a lease, if that is less. */
const TIMEOUT_MS = 5000;
/** Time for which a requested beat waits for further requests, ms. */
const GATHER_MS = 200;
/** Maximum number of projects that one statement releases: more can take longer than a beat may. */
const MAX_RELEASE = 1000;
/** Time that a rollout may take before a difference of configurations is logged, ms. */
const ROLLOUT_MS = 5 * 60_000;
/** Maximum number of polls for one run, when another process commits first. */
const MAX_ATTEMPTS = 3;

/** Change of the projects that this worker may poll. Both lists are empty if it only stops or resumes polling some. */
export interface OwnershipChange {
  /** Projects it owns from now on. */
  readonly taken: readonly OwnedProject[];
  /** Projects it no longer owns, or owns anew: polls of them that still run must change nothing. */
  readonly dropped: readonly string[];
}

const NO_CHANGE: OwnershipChange = { taken: [], dropped: [] };

export interface WorkerOptions {
  /** Name of this worker, unique across restarts. */
  readonly id: string;
  readonly version: string;
  readonly leaseMs: number;
  readonly coordinator: Coordinator;
  readonly ownership: Ownership;
  /** Configures these projects in the database again, unless a reload is under way. Returns whether it did. @throws {StoreError} */
  readonly restoreProjects: (projects: readonly string[]) => Promise<boolean>;
  readonly clock: Clock;
  /**
   * Receives `worker.waiting`, `worker.claimed`, `worker.released`, `worker.lease_lost`, `worker.config_differs` and
   * `worker.projects_restored`.
   */
  readonly emit: Observer;
  /** Aborted when the process stops: no poll is tried again. */
  readonly stopping: AbortSignal;
  /** Receives every error that is not a StoreError: a bug. */
  readonly onError: (error: unknown) => void;
}

/**
 * One of several equal workers that share projects (docs/protocol.md). Each beat renews the lease, claims what the share lacks,
 * takes for its own what the database says that it owns, and gives back what exceeds the share. Nothing else decides who owns
 * what. After a lost lease the worker owns nothing, and ignores answers to earlier requests.
 */
export class Worker {
  /** Whether a failure of the project is being reported: it is not given back meanwhile. */
  isReporting: (project: string) => boolean = () => false;
  readonly #options: WorkerOptions;
  readonly #listeners: ((change: OwnershipChange) => void)[] = [];
  readonly #timeoutMs: number;
  #state: 'new' | 'running' | 'stopping' | 'closed' = 'new';
  #configured: ReadonlySet<string> = new Set();
  /** Digests of the configuration, which is empty for a worker that takes no share, and of its projects. */
  #digests = { configuration: '', projects: '' };
  /** Projects that may be polled. Tokens of removed ones are owned, too, for their failures. */
  readonly #polled = new Set<string>();
  /** Projects of which a poll runs: they are not given back meanwhile. */
  readonly #polling = new Set<string>();
  /**
   * Tokens under which projects were given back. Such a statement can arrive late, so this worker never owns a project under
   * that token again, but gives it back once more.
   */
  readonly #given = new Map<string, string>();

  /** Number of the lease. Answers to requests of an earlier lease are ignored. */
  #term = 0;
  /** End of the lease, monotonic ms, counted from before the request, so never later than in the database; undefined without one. */
  #heldUntil: number | undefined;
  #expiresAt: number | undefined;
  #expiry: Timer | undefined;
  #isAnswered = false;
  #liveWorkers = 1;
  /** Why there is no first lease yet. */
  #waitsFor: StoreFailureReason | undefined;

  #beating: Promise<void> | undefined;
  #next: Timer | undefined;
  #soon: Timer | undefined;

  /** Since when other workers have another configuration, monotonic ms; Infinity once that is told. */
  #differsSince: number | undefined;
  /** Since when the database has had other projects than all workers, monotonic ms; Infinity while they are configured again. */
  #lostSince: number | undefined;

  constructor(options: WorkerOptions) {
    this.#options = options;
    this.#timeoutMs = Math.min(TIMEOUT_MS, options.leaseMs / 2);
  }

  /** Calls the listener, in the same turn of the event loop, whenever the set of projects that may be polled changes. */
  onChange(listener: (change: OwnershipChange) => void): void {
    this.#listeners.push(listener);
  }

  /** Sets the projects that this worker may own, and the digest of its configuration. */
  configure(projects: readonly string[], digest: string): void {
    this.#configured = new Set(projects);
    this.#digests = { configuration: digest, projects: digestOf(projects) };
    this.#unpoll([...this.#polled].filter((project) => !this.#configured.has(project)));
    if (this.#state !== 'running') return;
    if (this.#beating === undefined) this.#beatNow();
    else this.#beatSoon();
  }

  /**
   * Takes the first lease and the first projects. If the database does not answer, emits `worker.waiting`, and goes on trying
   * as after any other beat that fails; emits it again when there is another reason.
   * @throws {StoreError} if the database refuses
   */
  async start(): Promise<void> {
    try {
      await this.#beat();
    } catch (error) {
      if (!(error instanceof StoreError) || !isPassing(error)) {
        this.#close();
        throw error;
      }
      this.#failed(error);
    }
    if (this.#state === 'new') this.#state = 'running';
    this.#schedule(this.#options.clock.monotonic());
  }

  /**
   * Claims nothing more, and gives every project back once it is not busy; the rest, and the lease, once `work` has ended.
   * Until then the lease is renewed. Rejects only if `work` does.
   */
  async stop(work?: Promise<unknown>): Promise<void> {
    const { id, coordinator, ownership } = this.#options;
    this.#state = 'stopping';
    await this.#beating;
    // Announces that this worker takes no share any more: others claim its projects only then.
    if (this.#isAnswered) this.#beatNow();
    await work;
    await this.#beating;
    this.#close();
    // A running beat may begin another lease.
    await this.#beating;
    // A lease that cannot be ended expires.
    if (!this.#isAnswered) return;
    try {
      await this.#ask(ownership.flush());
      await this.#ask(coordinator.leave(id));
    } catch (error) {
      this.#failed(error);
    }
  }

  /**
   * Calls `poll` at most three times, until it commits: it resolves to undefined if its commit was refused. Stops earlier when
   * this worker no longer owns the project or the process stops; the result is then undefined.
   */
  async poll(
    project: string,
    poll: () => Promise<FinishedPoll | undefined>,
  ): Promise<FinishedPoll | undefined> {
    const { stopping } = this.#options;
    this.#polling.add(project);
    try {
      for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
        const finished = await poll();
        if (finished || stopping.aborted || !this.mayPoll(project)) return finished;
      }
      return undefined;
    } finally {
      this.#polling.delete(project);
      if (this.#state === 'stopping') this.#beatSoon();
    }
  }

  /** Whether this worker owns the project and its lease holds. */
  owns(project: string): boolean {
    return this.#isHeld() && this.#polled.has(project);
  }

  /** Whether this worker owns the project, its lease holds, and the database answers. */
  mayPoll(project: string): boolean {
    return this.owns(project) && this.#isAnswered;
  }

  /** Drops a project whose commit was refused: the store has disowned it, unless it is owned anew by now. */
  readonly observe: Observer = (event) => {
    if (event.type !== 'store.commit_refused') return;
    const { project } = event;
    if (this.#options.ownership.tokens.has(project)) return;
    if (this.#polled.delete(project)) this.#tell({ taken: [], dropped: [project] });
    if (this.#state === 'running') this.#beatSoon();
  };

  /** Whether the lease holds and the database answers. */
  isConnected(): boolean {
    return this.#isAnswered && this.#isHeld();
  }

  /** Number of the lease that holds, which no other lease of this worker has; undefined if none holds. */
  lease(): number | undefined {
    return this.#isHeld() ? this.#term : undefined;
  }

  /** Number of workers whose lease holds, including this one. */
  liveWorkers(): number {
    return this.#liveWorkers;
  }

  /** End of its newest lease, epoch ms; undefined before the first lease. */
  leaseExpiresAt(): number | undefined {
    return this.#expiresAt;
  }

  /** Returns the worker that owns the project; undefined if none with a lease does. @throws {StoreError} */
  ownerOf(project: string): Promise<string | undefined> {
    return this.#options.coordinator.owner(project);
  }

  /** Returns the rate limit that all workers share; undefined if `perSecond` is 0. */
  rateLimit(perSecond: number): RateLimit | undefined {
    const { coordinator, clock, onError } = this.#options;
    if (perSecond === 0) return undefined;
    const workers = () => this.liveWorkers();
    return new SharedRate({ perSecond, coordinator, workers, clock, onError });
  }

  // ---- the lease

  /** Whether the lease holds. Reads the clock, because the timers of a suspended process fire late and in any order. */
  #isHeld(): boolean {
    if (this.#heldUntil !== undefined && this.#options.clock.monotonic() >= this.#heldUntil) {
      this.#lose();
    }
    return this.#heldUntil !== undefined;
  }

  #lose(): void {
    const { id, emit, ownership } = this.#options;
    this.#expiry?.cancel();
    this.#heldUntil = undefined;
    this.#lostSince = undefined;
    this.#term += 1;
    for (const project of ownership.tokens.keys()) ownership.disown(project);
    const dropped = [...this.#polled];
    this.#polled.clear();
    emit({ type: 'worker.lease_lost', worker: id, projects: dropped.length, owned: 0 });
    this.#tell({ taken: [], dropped });
  }

  /** Renews the lease, or begins another one. @throws {StoreError} */
  async #renew(): Promise<Beat> {
    const { id, version, leaseMs, coordinator, clock } = this.#options;
    this.#isHeld();
    const [until, expiresAt] = [clock.monotonic() + leaseMs, clock.now() + leaseMs];
    const configDigest = this.#digest();
    const beat = await this.#ask(coordinator.renew({ id, version, configDigest }));
    // The clock of the database was set forward, or a standby that never had the lease took over.
    if (this.#heldUntil !== undefined && !beat.wasHeld) this.#lose();
    this.#heldUntil = until;
    this.#expiresAt = expiresAt;
    this.#expiry?.cancel();
    // A process that was suspended may read the answer after the lease has expired.
    if (!this.#isHeld()) throw tooLate();
    if (this.#state !== 'closed') {
      this.#expiry = clock.timeout(until - clock.monotonic(), () => this.#isHeld());
    }
    return beat;
  }

  /** While this worker stops, its digest is empty, so that others leave it no share. */
  #digest(): string {
    return this.#state === 'new' || this.#state === 'running' ? this.#digests.configuration : '';
  }

  // ---- beats

  /** @throws {StoreError} */
  async #beat(): Promise<void> {
    const { id, version, coordinator } = this.#options;
    const beat = await this.#renew();
    this.#liveWorkers = beat.workers.length;
    this.#setAnswered(true);
    this.#compare(beat);
    const configDigest = this.#digest();
    if (beat.hasFree && configDigest !== '') {
      await this.#ask(coordinator.claim({ id, version, configDigest }, [...this.#configured]));
    }
    const hasTaken = await this.#adopt();
    await this.#giveBack(this.#excess(beat));
    // One claim takes only so many.
    if (beat.hasFree && hasTaken && this.#state === 'running') this.#beatSoon();
  }

  /** Tells of workers whose configuration differs, and configures projects again that the database has lost. */
  #compare({ workers, configured }: Beat): void {
    const { id, leaseMs, clock, emit } = this.#options;
    const now = clock.monotonic();
    const digest = this.#digest();
    // A worker with an empty digest does not show what its configuration is.
    const others = workers
      .filter(({ configDigest }) => configDigest !== '' && configDigest !== digest)
      .map((worker) => worker.id)
      .filter((other) => other !== id);
    if (others.length === 0 || digest === '') this.#differsSince = undefined;
    else if (now - (this.#differsSince ??= now) >= ROLLOUT_MS) {
      this.#differsSince = Infinity;
      emit({ type: 'worker.config_differs', worker: id, others });
    }
    // A worker that has just been reloaded configures its projects before it shows its new configuration.
    const isAgreed = digest !== '' && workers.every((one) => one.configDigest === digest);
    if (!isAgreed || configured === this.#digests.projects) this.#lostSince = undefined;
    else if (now - (this.#lostSince ??= now) >= leaseMs) {
      this.#lostSince = Infinity;
      // Not waited for: a change of many projects takes longer than a beat may.
      void this.#restore([...this.#configured]);
    }
  }

  async #restore(projects: readonly string[]): Promise<void> {
    const { id, emit, restoreProjects, onError } = this.#options;
    try {
      if (!(await restoreProjects(projects))) return;
      emit({ type: 'worker.projects_restored', worker: id, projects: projects.length });
      if (this.#state === 'running') this.#beatSoon();
    } catch (error) {
      // The store has emitted its own failures, and a later beat tries again.
      if (!(error instanceof StoreError)) onError(error);
    } finally {
      this.#lostSince = undefined;
    }
  }

  /** Takes for its own what the database says that this worker owns. Returns whether it took any. @throws {StoreError} */
  async #adopt(): Promise<boolean> {
    const { id, coordinator, ownership } = this.#options;
    const { tokens } = ownership;
    const before = new Map(tokens);
    /** Whether nothing newer than the list is known, and no commit is under way. */
    const isCurrent = (project: string) =>
      !ownership.isCommitting(project) && tokens.get(project) === before.get(project);
    const listed = await this.#ask(coordinator.list(id));
    const rows = new Map(listed.map((row) => [row.project, row]));
    for (const [project, token] of this.#given) {
      if (rows.get(project)?.token !== token) this.#given.delete(project);
    }
    this.#drop([...before.keys()].filter((project) => !rows.has(project) && isCurrent(project)));
    const changed = this.#sort(
      listed.filter(({ project, token }) => {
        return isCurrent(project) && this.#given.get(project) !== token;
      }),
    );
    if (changed.length === 0) return false;
    const loaded = await this.#ask(coordinator.load(id, changed));
    return this.#take(loaded.filter(({ project }) => isCurrent(project)));
  }

  /** Drops what is of no use, owns removed projects for their failures, and returns those to take. */
  #sort(listed: readonly ListedProject[]): readonly string[] {
    const { ownership } = this.#options;
    const useless: string[] = [];
    const removed = new Map<string, string>();
    const changed: string[] = [];
    for (const { project, token, isRemoved, hasPending } of listed) {
      if (isRemoved ? !hasPending : !this.#configured.has(project)) {
        useless.push(project);
        if (!this.#isBusy(project)) this.#given.set(project, token);
      } else if (isRemoved) removed.set(project, token);
      else if (!this.#polled.has(project) || ownership.tokens.get(project) !== token) {
        changed.push(project);
      }
    }
    this.#drop(useless.filter((project) => ownership.tokens.has(project)));
    this.#unpoll([...removed.keys()]);
    for (const [project, token] of removed) ownership.own(project, token);
    return changed;
  }

  #take(loaded: readonly OwnedProject[]): boolean {
    const { id, emit, ownership } = this.#options;
    const taken = loaded.filter(({ project }) => this.#configured.has(project));
    if (taken.length === 0) return false;
    const again = taken
      .map(({ project }) => project)
      .filter((project) => this.#polled.has(project));
    for (const { project, token, figures } of taken) {
      ownership.own(project, token, figures);
      this.#polled.add(project);
    }
    const projects = taken.length - again.length;
    if (projects > 0)
      emit({ type: 'worker.claimed', worker: id, projects, owned: this.#polled.size });
    this.#tell({ taken, dropped: again });
    return projects > 0;
  }

  /** Returns idle projects that exceed the share, which is empty for a worker that stops. */
  #excess({ workers }: Beat): readonly string[] {
    const { id } = this.#options;
    const digest = this.#digest();
    const sharing = workers.filter((one) => one.id === id || one.configDigest === digest);
    const due = digest === '' ? 0 : Math.ceil(this.#configured.size / Math.max(1, sharing.length));
    const idle = [...this.#polled].filter((project) => !this.#isBusy(project));
    return idle.slice(0, Math.max(0, this.#polled.size - due));
  }

  /** Gives these projects back, and what is of no use, both also once more if the list shows them again. @throws {StoreError} */
  async #giveBack(projects: readonly string[]): Promise<void> {
    const { id, coordinator, ownership } = this.#options;
    if (projects.length > 0) {
      // No poll of them begins any more. If their health cannot be stored, the next beat takes them again.
      this.#unpoll(projects);
      await this.#ask(ownership.flush());
    }
    // The report of a failure may have begun meanwhile. The next beat takes such a project again.
    for (const project of projects.filter((each) => !this.#isBusy(each))) {
      const token = ownership.tokens.get(project);
      if (token !== undefined) this.#given.set(project, token);
      ownership.disown(project);
    }
    const all = [...this.#given];
    for (let start = 0; start < all.length; start += MAX_RELEASE) {
      const part = new Map(all.slice(start, start + MAX_RELEASE));
      await this.#ask(coordinator.release(id, part));
    }
  }

  #isBusy(project: string): boolean {
    return this.#polling.has(project) || this.isReporting(project);
  }

  #drop(projects: readonly string[]): void {
    for (const project of projects) this.#options.ownership.disown(project);
    this.#unpoll(projects);
  }

  #unpoll(projects: readonly string[]): void {
    const { id, emit } = this.#options;
    const dropped = projects.filter((project) => this.#polled.delete(project));
    if (dropped.length === 0) return;
    const owned = this.#polled.size;
    emit({ type: 'worker.released', worker: id, projects: dropped.length, owned });
    this.#tell({ taken: [], dropped });
  }

  #tell(change: OwnershipChange): void {
    for (const listener of this.#listeners) listener(change);
  }

  /**
   * Waits for an answer, at most as long as a beat may take; the database may do what was asked all the same.
   * @throws {StoreError} also if the lease ends meanwhile
   */
  async #ask<Answer>(answer: Promise<Answer>): Promise<Answer> {
    const term = this.#term;
    const late = Promise.withResolvers<never>();
    const timer = this.#options.clock.timeout(this.#timeoutMs, () => late.reject(tooLate()));
    try {
      const given = await Promise.race([answer, late.promise]);
      this.#isHeld();
      if (this.#term !== term) throw tooLate();
      return given;
    } finally {
      timer.cancel();
    }
  }

  #setAnswered(isAnswered: boolean): void {
    if (this.#isAnswered === isAnswered) return;
    this.#isAnswered = isAnswered;
    this.#tell(NO_CHANGE);
  }

  /** Handles a failed beat. The store logs its own failures; any other error is a bug. */
  #failed(error: unknown): void {
    if (!(error instanceof StoreError)) return this.#options.onError(error);
    this.#setAnswered(false);
    if (this.#expiresAt === undefined && error.reason !== this.#waitsFor) {
      this.#options.emit({ type: 'worker.waiting', reason: error.reason, error });
    }
    this.#waitsFor = error.reason;
    // Drops an expired lease now: its timer may fire late.
    this.#isHeld();
  }

  #beatNow(): void {
    this.#next?.cancel();
    const startedAt = this.#options.clock.monotonic();
    this.#beating ??= this.#beat()
      .catch((error: unknown) => this.#failed(error))
      .finally(() => {
        this.#beating = undefined;
        this.#schedule(startedAt);
      });
  }

  /** Beats within 200 ms; one beat serves all requests of that time. */
  #beatSoon(): void {
    if (this.#state === 'closed') return;
    this.#soon ??= this.#options.clock.timeout(GATHER_MS, () => {
      this.#soon = undefined;
      if (this.#beating === undefined) this.#beatNow();
      else this.#beatSoon();
    });
  }

  #schedule(startedAt: number): void {
    if (this.#state === 'closed') return;
    const { leaseMs, clock } = this.#options;
    const beatMs = leaseMs / BEATS_PER_LEASE;
    const intervalMs = this.#isAnswered ? beatMs : Math.min(beatMs, MAX_RETRY_MS);
    this.#next?.cancel();
    const waitMs = Math.max(0, startedAt + intervalMs - clock.monotonic());
    this.#next = clock.timeout(waitMs, () => this.#beatNow());
  }

  /** Ends the beats, so that the lease ends when it expires or when the worker leaves. */
  #close(): void {
    this.#state = 'closed';
    this.#next?.cancel();
    this.#soon?.cancel();
    this.#expiry?.cancel();
  }
}

/** Returns the digest of configured projects, in any order: `Beat.configured` is that of the database. */
export function digestOf(projects: readonly string[]): string {
  const sorted = projects.map((id) => Buffer.from(id)).toSorted((one, other) => one.compare(other));
  const text = sorted.map(String).join('\n');
  return projects.length === 0 ? '' : createHash('md5').update(text).digest('hex');
}

function tooLate(): StoreError {
  return new StoreError('io', 'the database did not answer in time');
}
