import { isStuck } from '../domain/limits.ts';
import { isFor, type NotifyKind } from '../domain/receiver.ts';
import { isUnfinished, UNFINISHED_STATUSES } from '../domain/status.ts';
import type { MonitorEvent } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { ConfiguredProject } from '../monitor/ports/watched-project.ts';
import { type Draft, type DraftOptions, Drafts, MAX_AGE_MS, SETTLE_MS } from './draft.ts';
import type { Message } from './message.ts';
import { MAX_TOLD, type Subscriber, type Subscription } from './ports.ts';

/** Time between two looks for what begins without an event: stuck prompts and projects that are down, ms. */
const LOOK_MS = 15_000;
/** Minimum time between two messages of a receiver with the same project and kind, ms. What comes meanwhile is gathered. */
const GATHER_MS = 60_000;
/** For how long projects that are down, or no longer, are gathered into one message, ms. */
const OUTAGE_MS = 30_000;
/** A project is down after so many failed polls, or after so many intervals without a poll, but not before this time, ms. */
const DOWN_POLLS = 3;
const MIN_DOWN_MS = 5 * 60_000;
/** Pause before an outcome that was emitted is in the store, ms. */
const AGAIN_MS = 1000;
/** Age up to which moves are found that no process has told, ms: those of the last day are told, the others given up. */
const MAX_FOUND_AGE_MS = 7 * MAX_AGE_MS;
/** Number of projects that are looked up at once. */
const PAGE_PROJECTS = 500;

export interface OutboxOptions extends DraftOptions {
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  /** Returns the configured projects by id. */
  readonly projects: () => ReadonlyMap<string, ConfiguredProject>;
  /** Whether this process polls the project, and so tells of it. */
  readonly mayTell: (project: string) => boolean;
  /** Returns the longest interval of a project's schedule, ms. */
  readonly maxIntervalMs: (project: string) => number;
  /** Called for moves that are too old to be told, because the receiver did not answer for a day. */
  readonly onGivenUp: (subscription: Subscription, project: string, count: number) => void;
}

/** A stored message to send. */
export interface Sendable {
  readonly message: Message;
  readonly createdAt: number;
  /** The owner of this project sends it. */
  readonly project: string;
}

type DueKind = NotifyKind | 'recovered' | 'up';

const SUBSCRIPTION: Readonly<Record<DueKind, NotifyKind>> = {
  failed: 'failed',
  completed: 'completed',
  stuck: 'stuck',
  recovered: 'stuck',
  down: 'down',
  up: 'down',
};
const KIND_OF: Readonly<Record<Exclude<Message['type'], 'test'>, NotifyKind>> = {
  'prompts.failed': 'failed',
  'prompts.completed': 'completed',
  'prompts.stuck': 'stuck',
  'prompts.recovered': 'stuck',
  'projects.down': 'down',
  'projects.up': 'down',
};

/** Something that a receiver is probably to be told; the store says what exactly. */
interface Due {
  readonly kind: DueKind;
  /** Empty for `down` and `up`, which are of all projects. */
  readonly project: string;
  /** Since when it waits, epoch ms. */
  since: number;
  /** When to look into it, monotonic ms. */
  at: number;
  /** The first and the last transition that was noted; 0 without transitions. */
  from: number;
  last: number;
}

/** What is known of a receiver. Lost with the process: the store has what must be kept. */
interface State {
  readonly receiver: string;
  readonly on: ReadonlySet<NotifyKind>;
  readonly due: Map<string, Due>;
  /** The projects of this process and receiver that were looked up. */
  readonly known: Set<string>;
  /** For a status and project: since when prompts are in it that can be stuck next, epoch ms. */
  readonly stuckSince: Map<string, number>;
  /** Projects with prompts that were told to be stuck. */
  readonly stuck: Set<string>;
  /** Projects that were told to be down, and since when they are. */
  down: ReadonlyMap<string, number>;
  /** When the last message of a kind and project was answered, monotonic ms. */
  readonly sentAt: Map<string, number>;
  current: Sendable | undefined;
  mayHaveStored: boolean;
  /** Whether projects can have come or gone since the last look. */
  isOutdated: boolean;
  /** Monotonic ms. */
  lookedAt: number;
}

/**
 * The messages that are due. What is composed is stored with the note that it was told, in one transaction, and is sent afterwards:
 * no kill loses it, and each repetition is the same message (docs/specification.md#stored-messages). One call at a time for each
 * receiver.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #drafts: Drafts;
  readonly #states = new Map<string, State>();
  /** Failures that this process has seen and whose outcome has not been emitted, by project. */
  readonly #unsettled = new Map<string, Set<number>>();
  /** Since when this process has polled a project, monotonic ms. */
  readonly #watchedSince = new Map<string, number>();

  constructor(options: OutboxOptions) {
    this.#options = options;
    this.#drafts = new Drafts(options);
  }

  /** Notes what can have become due. */
  readonly observe = (event: MonitorEvent): void => {
    const { type } = event;
    if (type === 'record.transition') {
      const { kind, from, to, transitionId } = event.transition;
      if (kind !== 'prompt') return;
      if (to === 'FAILED' || to === 'COMPLETED') this.#noteMove(event.project, to, transitionId);
      if (isUnfinished(from)) this.#noteRecovery(event.project);
    } else if (type === 'record.gone') {
      if (event.kind === 'prompt') this.#noteRecovery(event.project);
    } else if (type === 'prompt.failed') {
      this.#noteOutcome(event.project, event.transitionId);
    } else if (type === 'poll.finished') {
      if (event.health.up) this.#noteSuccess(event.project);
    } else if (type === 'store.commit_refused') {
      for (const state of this.#states.values()) forget(state, event.project);
    } else if (type === 'worker.released' || type === 'worker.lease_lost') {
      // What another worker tells meanwhile is looked up if a project comes back.
      this.#unsettled.clear();
      for (const state of this.#states.values()) state.known.clear();
      this.#outdate();
    } else if (type === 'worker.claimed' || type === 'config.applied') this.#outdate();
  };

  /**
   * Returns the message to send now: the oldest stored one that the receiver has not answered, or else one that is composed and
   * stored now. Without one, returns when to look again, epoch ms.
   * @throws {StoreError}
   */
  async next(receiver: Subscriber): Promise<Sendable | { readonly lookAt: number }> {
    const { clock } = this.#options;
    for (;;) {
      const state = await this.#stateOf(receiver);
      if (state.isOutdated || clock.monotonic() - state.lookedAt >= LOOK_MS) {
        await this.#look(receiver, state);
      }
      if (state.current !== undefined && this.#isOurs(state.current.project)) return state.current;
      state.current = state.mayHaveStored ? await this.#readStored(receiver.name) : undefined;
      if (state.current !== undefined) return state.current;
      state.mayHaveStored = false;
      const [due, at] = this.#first(state);
      const waitMs = at - clock.monotonic();
      if (waitMs > 0) return { lookAt: clock.now() + waitMs };
      if (due !== undefined) await this.#tell(state, due);
    }
  }

  /** Deletes a message that was answered, or is given up. @throws {StoreError} */
  async done(receiver: string, messageId: string): Promise<void> {
    await this.#options.store.forget(receiver, messageId);
    const state = this.#states.get(receiver);
    const message = state?.current?.message;
    if (state === undefined || message?.id !== messageId || message.type === 'test') return;
    state.current = undefined;
    const project = 'project' in message.data ? message.data.project : '';
    state.sentAt.set(`${KIND_OF[message.type]} ${project}`, this.#options.clock.monotonic());
  }

  /** Drops what is known of a receiver that is no longer configured. */
  drop(receiver: string): void {
    this.#states.delete(receiver);
  }

  /** Returns since when something waits for this receiver, epoch ms; undefined if nothing does. */
  oldestDueAt(receiver: string): number | undefined {
    const state = this.#states.get(receiver);
    if (state === undefined) return undefined;
    let oldest = state.current?.createdAt ?? Infinity;
    for (const due of state.due.values()) {
      if (due.project === '' || this.#tells(state, due.project))
        oldest = Math.min(oldest, due.since);
    }
    return Number.isFinite(oldest) ? oldest : undefined;
  }

  async #stateOf({ name, on }: Subscriber): Promise<State> {
    const { store, clock } = this.#options;
    const kinds = new Set(on);
    const known = this.#states.get(name);
    if (known?.on.symmetricDifference(kinds).size === 0) return known;
    await store.subscribe({ name, on }, clock.now());
    const state: State = {
      receiver: name,
      on: kinds,
      due: new Map(),
      known: new Set(),
      stuckSince: new Map(),
      stuck: new Set(),
      down: new Map(),
      sentAt: known?.sentAt ?? new Map(),
      current: undefined,
      mayHaveStored: true,
      isOutdated: true,
      lookedAt: -Infinity,
    };
    this.#states.set(name, state);
    return state;
  }

  /** A message whose project is no longer configured may be sent by every process that finds it: it may name others too. */
  #isOurs(project: string): boolean {
    const { projects, mayTell } = this.#options;
    return mayTell(project) || !projects().has(project);
  }

  async #readStored(receiver: string): Promise<Sendable | undefined> {
    const rows = await this.#options.store.messages(receiver);
    const row = rows.find(({ project }) => this.#isOurs(project));
    if (row === undefined) return undefined;
    const { project, createdAt, content } = row;
    return { message: JSON.parse(content), createdAt, project };
  }

  #noteMove(project: string, to: 'FAILED' | 'COMPLETED', id: number): void {
    if (to === 'FAILED') {
      const ids = this.#unsettled.get(project) ?? new Set();
      this.#unsettled.set(project, ids.add(id));
    }
    for (const state of this.#states.values()) {
      if (to === 'FAILED') this.#note(state, 'failed', project, { id, afterMs: SETTLE_MS });
      else this.#note(state, 'completed', project, { id });
    }
  }

  #noteOutcome(project: string, id: number): void {
    const ids = this.#unsettled.get(project);
    if (ids?.delete(id) !== true || ids.size > 0) return;
    this.#unsettled.delete(project);
    for (const { due } of this.#states.values()) {
      const failed = due.get(`failed ${project}`);
      if (failed !== undefined) failed.at = this.#options.clock.monotonic();
    }
  }

  #noteRecovery(project: string): void {
    for (const state of this.#states.values()) {
      if (state.stuck.has(project)) this.#note(state, 'recovered', project);
    }
  }

  #noteSuccess(project: string): void {
    for (const state of this.#states.values()) {
      if (state.down.has(project)) this.#note(state, 'up', '', { afterMs: OUTAGE_MS });
    }
  }

  #outdate(): void {
    for (const state of this.#states.values()) state.isOutdated = true;
  }

  /** Returns what is to be looked into first, and when, monotonic ms; no later than the next look. */
  #first(state: State): readonly [due: Due | undefined, at: number] {
    let first: Due | undefined;
    let firstAt = state.lookedAt + LOOK_MS;
    for (const due of state.due.values()) {
      if (due.at >= firstAt) continue;
      if (due.project !== '' && !this.#tells(state, due.project)) continue;
      const sentAt = state.sentAt.get(`${SUBSCRIPTION[due.kind]} ${due.project}`) ?? -Infinity;
      const at = Math.max(due.at, sentAt + GATHER_MS);
      if (at < firstAt) [first, firstAt] = [due, at];
    }
    return [first, firstAt];
  }

  /** Whether this process tells the receiver of the project. */
  #tells({ known }: State, project: string): boolean {
    return known.has(project) && this.#options.mayTell(project);
  }

  #note(
    state: State,
    kind: DueKind,
    project: string,
    { id = 0, afterMs = 0, since = this.#options.clock.now() } = {},
  ): void {
    if (!state.on.has(SUBSCRIPTION[kind])) return;
    const key = `${kind} ${project}`;
    const at = this.#options.clock.monotonic() + afterMs;
    const due = state.due.get(key) ?? { kind, project, since, at, from: id, last: id };
    due.from = Math.min(due.from, id);
    due.last = Math.max(due.last, id);
    state.due.set(key, due);
  }

  /** Looks up the projects that have come, drops those that have gone, and finds what has begun without an event. */
  async #look(receiver: Subscriber, state: State): Promise<void> {
    const { projects, mayTell, clock } = this.#options;
    state.isOutdated = false;
    state.lookedAt = clock.monotonic();
    const ours = new Set<string>();
    for (const [id, project] of projects()) {
      if (!mayTell(id)) this.#watchedSince.delete(id);
      else if (!this.#watchedSince.has(id)) this.#watchedSince.set(id, clock.monotonic());
      if (mayTell(id) && isFor(receiver, project)) ours.add(id);
    }
    for (const id of state.known) if (!ours.has(id)) forget(state, id);
    for (const [key, { project }] of state.due) {
      if (project !== '' && !ours.has(project)) state.due.delete(key);
    }
    for (const [key, at] of state.sentAt) {
      if (at + GATHER_MS <= clock.monotonic()) state.sentAt.delete(key);
    }
    const taken = Array.from(ours).filter((id) => !state.known.has(id));
    try {
      if (taken.length > 0) await this.#lookUp(state, taken);
    } catch (error) {
      state.isOutdated = true;
      throw error;
    }
    if (state.on.has('stuck')) for (const id of ours) this.#findStuck(state, id);
    if (state.on.has('down')) this.#findDown(state);
  }

  /** Notes what the store has of projects that this process polls since recently. @throws {StoreError} */
  async #lookUp(state: State, taken: readonly string[]): Promise<void> {
    const { store, clock } = this.#options;
    const { receiver, on } = state;
    const since = clock.now() - MAX_FOUND_AGE_MS;
    for (const kind of ['failed', 'completed'] as const) {
      if (!on.has(kind)) continue;
      const asked = kind === 'failed' ? taken.filter((id) => this.#hasFailed(id, since)) : taken;
      for (let start = 0; start < asked.length; start += PAGE_PROJECTS) {
        const page = asked.slice(start, start + PAGE_PROJECTS);
        for (const { project, id, at } of await store.firstMoves({ receiver, kind, since }, page)) {
          this.#note(state, kind, project, { id, since: at });
        }
      }
    }
    const withStuck = new Set(on.has('stuck') ? await store.projectsWithStuck(receiver) : []);
    const down = on.has('down') ? await store.down(receiver) : undefined;
    state.down = down?.since ?? new Map();
    for (const id of taken) {
      state.known.add(id);
      if (!withStuck.has(id)) continue;
      state.stuck.add(id);
      this.#note(state, 'recovered', id);
    }
    state.mayHaveStored = true;
  }

  #hasFailed(project: string, since: number): boolean {
    const prompts = this.#options.store.snapshot(project)?.listings.get('prompt');
    return prompts === undefined || (prompts.lastFailureAt ?? -Infinity) >= since;
  }

  #findStuck(state: State, project: string): void {
    const { store, health, clock } = this.#options;
    const oldest = store.snapshot(project)?.listings.get('prompt')?.oldest;
    // While polls fail, prompts may have moved.
    if (oldest === undefined || health(project)?.up !== true) return;
    for (const [status, since] of oldest) {
      const from = Math.max(since, state.stuckSince.get(`${status} ${project}`) ?? -Infinity);
      if (isStuck(clock.now() - from, this.#drafts.expected(project, status))) {
        this.#note(state, 'stuck', project);
      }
    }
  }

  #findDown(state: State): void {
    let isAnyDown = false;
    for (const id of state.known) {
      if (!state.down.has(id)) isAnyDown ||= this.#downSince(id) !== undefined;
      else if (this.#upSince(state.down, id) !== undefined) this.#noteSuccess(id);
    }
    if (isAnyDown) this.#note(state, 'down', '', { afterMs: OUTAGE_MS });
    else state.due.delete('down ');
  }

  /** Returns since when a project has not been polled, epoch ms; undefined while it is not down. */
  #downSince(project: string): number | undefined {
    const { store, health: healthOf, clock, maxIntervalMs } = this.#options;
    const health = healthOf(project);
    const since = health?.lastSuccessAt ?? store.snapshot(project)?.configuredAt;
    if (health === undefined || since === undefined) return undefined;
    const downMs = clock.now() - since;
    if (downMs <= MIN_DOWN_MS) return undefined;
    // While this process did not poll it, no poll was missing.
    const watchedMs = clock.monotonic() - (this.#watchedSince.get(project) ?? Infinity);
    const hasMissed = () => Math.min(downMs, watchedMs) > DOWN_POLLS * maxIntervalMs(project);
    return health.consecutiveFailures >= DOWN_POLLS || hasMissed() ? since : undefined;
  }

  /** Returns since when a project that was down is polled again, epoch ms; undefined while it is not. */
  #upSince(down: ReadonlyMap<string, number>, project: string): number | undefined {
    const since = down.get(project) ?? Infinity;
    const { lastSuccessAt = -Infinity, steadySince } = this.#options.health(project) ?? {};
    if (lastSuccessAt <= since) return undefined;
    return steadySince !== undefined && steadySince > since ? steadySince : lastSuccessAt;
  }

  /** Composes and stores what is due, if there is anything; then it is due no longer, or later. @throws {StoreError} */
  async #tell(state: State, due: Due): Promise<void> {
    const { kind, project: id } = due;
    const project = this.#options.projects().get(id);
    try {
      if (kind === 'failed' || kind === 'completed') {
        if (project !== undefined) return await this.#tellMoves(state, { due, kind, project });
      }
      // Before it is read: an event meanwhile is noted anew.
      state.due.delete(`${kind} ${id}`);
      if (kind === 'down' || kind === 'up') await this.#tellProjects(state, kind);
      else if (project === undefined) return;
      else if (kind === 'stuck') await this.#tellStuck(state, project);
      else await this.#tellRecovered(state, project);
    } catch (error) {
      // Perhaps only the answer of the store was lost.
      state.mayHaveStored = true;
      forget(state, id);
      throw error;
    }
  }

  async #tellMoves(
    state: State,
    { due, kind, project }: { due: Due; kind: 'failed' | 'completed'; project: ConfiguredProject },
  ): Promise<void> {
    const { clock, onGivenUp } = this.#options;
    const { receiver } = state;
    const read = await this.#drafts.moves(receiver, kind, { project, from: due.from });
    if (read === undefined) return this.drop(receiver);
    const { last = due.last, old, waitsSince } = read.found;
    if (read.draft !== undefined) {
      if (!(await this.#store(state, read.draft))) return;
      if (old > 0) onGivenUp({ receiver, kind }, project.id, old);
      due.from = last + 1;
    }
    if (waitsSince !== undefined) {
      const restMs = Math.min(Math.max(waitsSince + SETTLE_MS - clock.now(), 0), SETTLE_MS) + 1;
      const isEmitted = !this.#unsettled.has(project.id);
      due.at = clock.monotonic() + (isEmitted ? Math.min(restMs, AGAIN_MS) : restMs);
      due.since = waitsSince;
    } else if (due.last <= last) state.due.delete(`${kind} ${project.id}`);
  }

  async #tellStuck(state: State, project: ConfiguredProject): Promise<void> {
    const read = await this.#drafts.stuck(state.receiver, project);
    if (read === undefined) return this.drop(state.receiver);
    const { draft, next } = read;
    if (draft !== undefined) {
      if (!(await this.#store(state, draft))) return;
      state.stuck.add(project.id);
      // One can have moved on since it was read.
      this.#note(state, 'recovered', project.id);
    }
    for (const [status, since] of next) state.stuckSince.set(`${status} ${project.id}`, since);
  }

  async #tellRecovered(state: State, project: ConfiguredProject): Promise<void> {
    const read = await this.#drafts.recovered(state.receiver, project);
    if (read === undefined || !(await this.#store(state, read.draft))) return;
    if (!read.areOthersTold) state.stuck.delete(project.id);
    if (read.draft.told.length === MAX_TOLD) this.#note(state, 'recovered', project.id);
  }

  async #tellProjects(state: State, kind: 'down' | 'up'): Promise<void> {
    const { store, projects } = this.#options;
    const told = await store.down(state.receiver);
    if (told === undefined) return this.drop(state.receiver);
    state.down = told.since;
    const outages = Array.from(state.known).flatMap((id) => {
      const project = this.#tells(state, id) ? projects().get(id) : undefined;
      const toldSince = told.since.get(id);
      const isDown = kind === 'down' && toldSince === undefined;
      const since = isDown ? this.#downSince(id) : toldSince;
      const until = kind === 'up' ? this.#upSince(told.since, id) : undefined;
      const isNews = isDown || until !== undefined;
      return isNews && project !== undefined && since !== undefined
        ? [{ project, since, until }]
        : [];
    });
    const draft = this.#drafts.projects(state.receiver, kind, { token: told.token, outages });
    if (draft === undefined || !(await this.#store(state, draft))) return;
    const down = new Map(told.since);
    for (const { project, since } of outages) {
      if (kind === 'up') down.delete(project.id);
      else down.set(project.id, since);
    }
    state.down = down;
  }

  /**
   * Stores a message with what it tells, and makes it the current one. Returns false if another process has told something
   * meanwhile: then the project is looked up again.
   */
  async #store(state: State, { lead: project, message, ...of }: Draft): Promise<boolean> {
    const createdAt = message === undefined ? 0 : Date.parse(message.timestamp);
    const content = JSON.stringify(message);
    const row = message && { id: message.id, project, createdAt, content };
    if (!(await this.#options.store.compose({ ...of, message: row }))) {
      forget(state, project);
      return false;
    }
    state.current = message && { message, createdAt, project };
    return true;
  }
}

/** Forgets what is known of a project, which is then looked up again if this process polls it. */
function forget(state: State, project: string): void {
  state.known.delete(project);
  state.stuck.delete(project);
  for (const status of UNFINISHED_STATUSES) state.stuckSince.delete(`${status} ${project}`);
  state.isOutdated = true;
}
