import { isPassing, StoreError, type StoreFailureReason } from '../monitor/errors.ts';
import type { Observer } from '../monitor/events.ts';
import type { Clock, Timer } from '../monitor/ports/clock.ts';
import { SharedConfiguration } from './configuration.ts';
import type { Beat, Coordinator, ListedProject, OwnedProject, Ownership } from './ports.ts';
import { withTimeout } from './timeout.ts';

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
  readonly coordinator: Omit<Coordinator, 'grant' | 'owner'>;
  readonly ownership: Omit<Ownership, 'planTick'>;
  /** Configures these projects in the database again, unless a reload is under way. Returns whether it did. @throws {StoreError} */
  readonly restoreProjects: (projects: readonly string[]) => Promise<boolean>;
  readonly clock: Clock;
  /**
   * Receives `worker.claimed`, `worker.released`, `worker.lease_lost`, `worker.config_differs` and
   * `worker.projects_restored`.
   */
  readonly emit: Observer;
  /** Called whenever the set of projects that may be polled changes. */
  readonly onChange: (change: OwnershipChange) => void;
  /** Whether a poll of the project runs, or a failure of it is being reported: it is not given back meanwhile. */
  readonly isBusy: (project: string) => boolean;
  /** Receives every error that is not a StoreError: a bug. */
  readonly onError: (error: unknown) => void;
}

/**
 * One of several equal workers that share projects (docs/protocol.md). Each beat renews the lease, claims what the share lacks
 * or gives back what exceeds it, and then takes for its own what the database says that it owns. Nothing else decides that.
 * After a lost lease the worker owns nothing, and ignores answers to earlier requests.
 */
export class Worker {
  readonly #options: WorkerOptions;
  readonly #configuration: SharedConfiguration;
  readonly #timeoutMs: number;
  #state: 'new' | 'starting' | 'running' | 'stopping' = 'new';
  #configured: ReadonlySet<string> = new Set();
  /** Digests of the configuration, which is empty for a worker that takes no share, and of its projects. */
  #digests = { configuration: '', projects: '' };
  /** Projects that may be polled, unless one is leaving. Tokens of removed ones are owned, too, for their failures. */
  readonly #polled = new Set<string>();
  /** Projects that the running beat gives back. */
  readonly #leaving = new Set<string>();
  /** Projects of the last list that are of no use to this worker, with their tokens. */
  #useless = new Map<string, string>();
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
  #isClosed = false;
  #isAnswered = false;
  #liveWorkers = 1;
  /** Receives failures before the first lease. */
  #onWaiting: ((error: StoreError) => void) | undefined;
  #waitsFor: StoreFailureReason | undefined;

  #beating: Promise<void> | undefined;
  #next: Timer | undefined;
  #soon: Timer | undefined;

  constructor(options: WorkerOptions) {
    this.#options = options;
    this.#configuration = new SharedConfiguration({
      ...options,
      onRestored: () => {
        if (this.#state === 'running') this.#beatSoon();
      },
    });
    this.#timeoutMs = Math.min(TIMEOUT_MS, options.leaseMs / 2);
  }

  /** Sets the projects that this worker may own, and the digest of its configuration. */
  configure(projects: readonly string[], digest: string): void {
    this.#configured = new Set(projects);
    const { coordinator } = this.#options;
    this.#digests = { configuration: digest, projects: coordinator.digestOf(projects) };
    this.#unpoll([...this.#polled].filter((project) => !this.#configured.has(project)));
    if (this.#state !== 'running') return;
    if (this.#beating === undefined) this.#beatNow();
    else this.#beatSoon();
  }

  /**
   * Takes the first lease and the first projects. If the database does not answer, calls `onWaiting`, if it is given, and
   * goes on trying as after any other beat that fails; calls it again when there is another reason.
   * @throws {StoreError} without `onWaiting`, or if the database refuses
   */
  async start(onWaiting?: (error: StoreError) => void): Promise<void> {
    this.#state = 'starting';
    try {
      await this.#beat();
    } catch (error) {
      if (!onWaiting || !(error instanceof StoreError) || !isPassing(error)) {
        this.#close();
        throw error;
      }
      this.#onWaiting = onWaiting;
      this.#failed(error);
    }
    if (this.#state === 'starting') this.#state = 'running';
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

  /** Whether this worker owns the project and its lease holds; it may be giving the project back. */
  owns(project: string): boolean {
    return this.#isHeld() && this.#polled.has(project);
  }

  /** Whether this worker owns the project and keeps it, its lease holds, and the database answers. */
  mayPoll(project: string): boolean {
    return this.owns(project) && !this.#leaving.has(project) && this.#isAnswered;
  }

  /** Notes that a commit of this project was refused: the store has disowned it, unless it is owned anew by now. */
  refused(project: string): void {
    if (this.#options.ownership.tokens.has(project)) return;
    if (this.#polled.delete(project)) this.#options.onChange({ taken: [], dropped: [project] });
    if (this.#state === 'running') this.#beatSoon();
  }

  /** Notes that the project is not busy any more. */
  ended(): void {
    if (this.#state === 'stopping' && !this.#isClosed) this.#beatSoon();
  }

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
    this.#term += 1;
    const { size } = this.#polled;
    for (const project of ownership.tokens.keys()) ownership.disown(project);
    emit({ type: 'worker.lease_lost', worker: id, projects: size, owned: 0 });
    const dropped = [...this.#polled];
    this.#polled.clear();
    this.#options.onChange({ taken: [], dropped });
  }

  /** Renews the lease, or begins another one. Undefined if the answer came too late to count. @throws {StoreError} */
  async #renew(): Promise<Beat | undefined> {
    const { id, version, leaseMs, coordinator, clock } = this.#options;
    this.#isHeld();
    const term = this.#term;
    const [until, expiresAt] = [clock.monotonic() + leaseMs, clock.now() + leaseMs];
    const configDigest = this.#digest();
    const beat = await this.#ask(coordinator.renew({ id, version, configDigest }));
    // Also loses a lease whose end was not noticed until now.
    this.#isHeld();
    if (term !== this.#term || this.#isClosed) return undefined;
    this.#heldUntil = until;
    this.#expiresAt = expiresAt;
    this.#expiry?.cancel();
    // A process that was suspended may read the answer after the lease has expired.
    if (!this.#isHeld()) return undefined;
    this.#expiry = clock.timeout(until - clock.monotonic(), () => this.#isHeld());
    return beat;
  }

  // ---- beats

  async #beat(): Promise<void> {
    const beat = await this.#renew();
    if (beat === undefined) return;
    const term = this.#term;
    const { workers } = beat;
    this.#liveWorkers = workers.length;
    this.#setAnswered(true);
    this.#compare(beat);
    await this.#share(beat);
    if (this.lease() !== term) return;
    const hasTaken = await this.#adopt(term);
    // One claim takes only so many, and the list can show projects to give back.
    const isMore = (beat.hasFree && hasTaken) || this.#idleUseless().size > 0;
    if (isMore && this.#state === 'running') this.#beatSoon();
  }

  #compare(beat: Beat): void {
    const { projects } = this.#digests;
    const own = { digest: this.#digest(), projects: [...this.#configured], configured: projects };
    this.#configuration.check(beat, own);
  }

  /** Claims what is missing, or gives back what exceeds the share. @throws {StoreError} */
  async #share({ workers, hasFree }: Beat): Promise<void> {
    const { id, version, coordinator, isBusy } = this.#options;
    const configDigest = this.#digest();
    const sharing = workers.filter((one) => one.id === id || one.configDigest === configDigest);
    const due =
      this.#state === 'stopping'
        ? 0
        : Math.ceil(this.#configured.size / Math.max(1, sharing.length));
    if (hasFree && this.#state !== 'stopping') {
      const term = this.#term;
      await this.#ask(coordinator.claim({ id, version, configDigest }, [...this.#configured]));
      if (this.lease() !== term) return;
    }
    const excess = [...this.#polled].filter((project) => !isBusy(project));
    excess.length = Math.min(excess.length, Math.max(0, this.#polled.size - due));
    await this.#release(excess);
  }

  /** Gives these projects back, and those of no use to this worker. @throws {StoreError} */
  async #release(projects: readonly string[]): Promise<void> {
    const { id, coordinator, ownership } = this.#options;
    const tokens = new Map([...this.#given, ...this.#idleUseless()]);
    for (const project of projects) this.#leaving.add(project);
    try {
      if (projects.length > 0) {
        const term = this.#term;
        await this.#ask(ownership.flush());
        if (this.lease() !== term) return;
      }
      for (const project of projects) {
        const token = ownership.tokens.get(project);
        if (token !== undefined) tokens.set(project, token);
      }
      if (tokens.size === 0) return;
      for (const [project, token] of tokens) this.#given.set(project, token);
      this.#drop(projects);
    } finally {
      this.#leaving.clear();
    }
    const all = [...tokens];
    for (let start = 0; start < all.length; start += MAX_RELEASE) {
      const part = new Map(all.slice(start, start + MAX_RELEASE));
      await this.#ask(coordinator.release(id, part));
    }
  }

  #idleUseless(): ReadonlyMap<string, string> {
    const { isBusy } = this.#options;
    return new Map([...this.#useless].filter(([project]) => !isBusy(project)));
  }

  /** Takes for its own what the database says that this worker owns. Returns whether it took any. @throws {StoreError} */
  async #adopt(term: number): Promise<boolean> {
    const { id, coordinator, ownership } = this.#options;
    const { tokens } = ownership;
    const before = new Map(tokens);
    /** Whether nothing newer than the list is known, and no commit is under way. */
    const isCurrent = (project: string) =>
      !ownership.isCommitting(project) && tokens.get(project) === before.get(project);
    const listed = await this.#ask(coordinator.list(id));
    if (this.lease() !== term) return false;
    const rows = new Map(listed.map((row) => [row.project, row]));
    for (const [project, token] of this.#given) {
      if (rows.get(project)?.token !== token) this.#given.delete(project);
    }
    this.#drop([...before.keys()].filter((project) => !rows.has(project) && isCurrent(project)));
    const changed = this.#sort(listed.filter(({ project }) => isCurrent(project)));
    if (changed.length === 0) return false;
    const loaded = await this.#ask(coordinator.load(id, changed));
    if (this.lease() !== term) return false;
    return this.#take(
      loaded.filter(
        ({ project, token }) => isCurrent(project) && this.#given.get(project) !== token,
      ),
    );
  }

  /** Drops what is of no use, owns removed projects for their failures, and returns those to take. */
  #sort(listed: readonly ListedProject[]): readonly string[] {
    const { ownership } = this.#options;
    const useless = new Map<string, string>();
    const removed = new Map<string, string>();
    const changed: string[] = [];
    for (const { project, token, isRemoved, hasPending } of listed) {
      if (this.#given.get(project) === token) continue;
      if (isRemoved ? !hasPending : !this.#configured.has(project)) useless.set(project, token);
      else if (isRemoved) removed.set(project, token);
      else if (!this.#polled.has(project) || ownership.tokens.get(project) !== token) {
        changed.push(project);
      }
    }
    this.#useless = useless;
    this.#drop([...useless.keys()].filter((project) => ownership.tokens.has(project)));
    this.#unpoll([...removed.keys()]);
    for (const [project, token] of removed) ownership.own(project, token);
    return changed;
  }

  #take(loaded: readonly OwnedProject[]): boolean {
    const { id, emit, ownership, onChange } = this.#options;
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
    onChange({ taken, dropped: again });
    return projects > 0;
  }

  #drop(projects: readonly string[]): void {
    for (const project of projects) this.#options.ownership.disown(project);
    this.#unpoll(projects);
  }

  #unpoll(projects: readonly string[]): void {
    const { id, emit, onChange } = this.#options;
    const dropped = projects.filter((project) => this.#polled.delete(project));
    if (dropped.length === 0) return;
    const owned = this.#polled.size;
    emit({ type: 'worker.released', worker: id, projects: dropped.length, owned });
    onChange({ taken: [], dropped });
  }

  /** While this worker stops, its digest is empty, so that others leave it no share. */
  #digest(): string {
    return this.#state === 'stopping' ? '' : this.#digests.configuration;
  }

  async #ask<Answer>(answer: Promise<Answer>): Promise<Answer> {
    return await withTimeout(answer, this.#timeoutMs, this.#options.clock);
  }

  #setAnswered(isAnswered: boolean): void {
    if (this.#isAnswered === isAnswered) return;
    this.#isAnswered = isAnswered;
    this.#options.onChange(NO_CHANGE);
  }

  /** Handles a failed beat. The store logs its own failures; any other error is a bug. */
  #failed(error: unknown): void {
    if (!(error instanceof StoreError)) return this.#options.onError(error);
    this.#setAnswered(false);
    if (this.#expiresAt === undefined && error.reason !== this.#waitsFor) this.#onWaiting?.(error);
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
    if (this.#isClosed) return;
    this.#soon ??= this.#options.clock.timeout(GATHER_MS, () => {
      this.#soon = undefined;
      if (this.#beating === undefined) this.#beatNow();
      else this.#beatSoon();
    });
  }

  #schedule(startedAt: number): void {
    if (this.#isClosed) return;
    const { leaseMs, clock } = this.#options;
    const beatMs = leaseMs / BEATS_PER_LEASE;
    const intervalMs = this.#isAnswered ? beatMs : Math.min(beatMs, MAX_RETRY_MS);
    this.#next?.cancel();
    const waitMs = Math.max(0, startedAt + intervalMs - clock.monotonic());
    this.#next = clock.timeout(waitMs, () => this.#beatNow());
  }

  /** Ends the beats, and ignores later answers, so that the lease ends when it expires or when the worker leaves. */
  #close(): void {
    this.#isClosed = true;
    this.#next?.cancel();
    this.#soon?.cancel();
    this.#expiry?.cancel();
  }
}
