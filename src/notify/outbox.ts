import { expectationIn, isStuck } from '../domain/limits.ts';
import { isFor, type NotifyKind } from '../domain/receiver.ts';
import { isUnfinished, UNFINISHED_STATUSES } from '../domain/status.ts';
import type { MonitorEvent } from '../monitor/events.ts';
import type { ConfiguredProject } from '../monitor/ports/watched-project.ts';
import { type ConditionOptions, Conditions, type Outage, type Watched } from './conditions.ts';
import { type DraftOptions, Drafts } from './draft.ts';
import { MAX_CAUSES, MAX_EXPERIMENTS, MAX_PROMPTS, type Message } from './message.ts';
import {
  type Composed,
  MAX_TOLD,
  type MoveKind,
  type NotifyStore,
  type StoredMessage,
  type Subscriber,
  type Subscription,
  type WaitingRow,
} from './ports.ts';

/** Time between two looks for what begins without an event: stuck prompts and projects that are down, ms. */
const LOOK_MS = 15_000;
/** Minimum time between two messages of a receiver with the same project and kind, ms. What comes meanwhile is gathered. */
const GATHER_MS = 60_000;
/** For how long projects that are down, or no longer, are gathered into one message, ms. */
const OUTAGE_MS = 30_000;
/** For how long a failure waits for its outcome, ms. */
const SETTLE_MS = 60_000;
/** Pause before an outcome that was emitted is in the store; then perhaps that of the next failure is too, ms. */
const OUTCOME_MS = 1000;
/** Age at which moves are given up, ms. */
const MAX_AGE_MS = 24 * 60 * 60_000;
/** Age up to which moves are found that no process has told, ms: those of the last day are told, the others given up. */
const MAX_FOUND_AGE_MS = 7 * MAX_AGE_MS;
/** Number of projects that are looked up at once. */
const PAGE_PROJECTS = 500;

export interface OutboxOptions extends DraftOptions, ConditionOptions {
  readonly store: NotifyStore;
  /** Returns the configured projects by id. */
  readonly projects: () => ReadonlyMap<string, ConfiguredProject>;
  /** Whether this process polls the project, and so tells of it. */
  readonly mayTell: (project: string) => boolean;
  /** Returns until when moves of a project are not to be told, epoch ms; undefined without such a time in the last day. */
  readonly untoldUntil: (project: string) => number | undefined;
  /** Called for moves that are too old to be told, because the receiver did not answer for a day. */
  readonly onGivenUp: (subscription: Subscription, project: string, count: number) => void;
}

const KIND_OF: Readonly<Record<Message['type'], NotifyKind | 'test'>> = {
  'prompts.failed': 'failed',
  'prompts.completed': 'completed',
  'prompts.stuck': 'stuck',
  'prompts.recovered': 'stuck',
  'experiments.finished': 'finished',
  'projects.down': 'down',
  'projects.up': 'down',
  test: 'test',
};

/** Something that the receiver is probably to be told; the store says what exactly. */
interface Due {
  readonly kind: NotifyKind;
  /** Empty for `down`, which is of all projects. */
  readonly project: string;
  /** Since when it waits, epoch ms. */
  since: number;
  /** When to look into it, monotonic ms. */
  at: number;
}

/**
 * What is due for one receiver. A message is stored with the note of what it tells, in one transaction, and is sent afterwards: no
 * kill loses it, and each repetition is the same message (docs/specification.md#stored-messages). What is in memory only says where
 * to look in the store.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #conditions: Conditions;
  readonly #drafts: Drafts;
  #receiver: Subscriber;
  /** By kind and project. */
  readonly #due = new Map<string, Due>();
  /** When the last message of a kind and project was answered, monotonic ms. */
  readonly #answeredAt = new Map<string, number>();
  readonly #watched = new Map<string, Watched>();
  /** The time of what the first poll after the last pause found, by project, epoch ms. */
  readonly #resumedAt = new Map<string, number>();
  /** The stored messages, also of projects that other processes poll. */
  #stored: readonly StoredMessage[] = [];
  /** Whether the receiver is subscribed, and its stored messages were read. */
  #isRead = false;
  /** Monotonic ms. */
  #lookedAt = -Infinity;

  constructor(receiver: Subscriber, options: OutboxOptions) {
    this.#receiver = receiver;
    this.#options = options;
    this.#conditions = new Conditions(options);
    this.#drafts = new Drafts(options);
  }

  /** Takes another configuration of the receiver. */
  configure(receiver: Subscriber): void {
    this.#receiver = receiver;
    this.#readAgain();
  }

  /** Notes what can have become due. Returns whether to look at once. */
  observe(event: MonitorEvent): boolean {
    const { type } = event;
    if (type === 'record.transition') {
      const { kind, from, to } = event.transition;
      if (kind !== 'prompt') return false;
      if (to === 'FAILED') this.#note('failed', event.project, { afterMs: SETTLE_MS });
      if (to === 'COMPLETED') this.#note('completed', event.project);
      if (isUnfinished(from)) this.#noteRecovery(event.project);
    } else if (type === 'record.gone') {
      if (event.kind === 'prompt') this.#noteRecovery(event.project);
    } else if (type === 'prompt.failed') {
      for (const kind of ['failed', 'finished']) {
        const due = this.#due.get(keyOf(kind, event.project));
        if (due !== undefined) this.#awaitOutcomes(due, OUTCOME_MS);
      }
    } else if (type === 'project.resumed') {
      this.#resumedAt.set(event.project, event.at);
    } else if (type === 'experiment.finished') {
      this.#note('finished', event.finish.project);
    } else if (type === 'store.commit_refused') {
      this.#forget(event.project);
    } else if (type === 'worker.claimed') {
      this.#lookAgain();
    } else if (type === 'worker.released' || type === 'worker.lease_lost') {
      // Another worker may tell of a project before it comes back.
      this.#readAgain();
    } else return false;
    return true;
  }

  /**
   * Returns the message to send now: the oldest stored one that the receiver has not answered, or else one that is composed and
   * stored now. Without one, returns how long to wait for news. One call at a time.
   * @throws {StoreError}
   */
  async next(): Promise<StoredMessage | { readonly waitMs: number }> {
    const { clock } = this.#options;
    let telling: Due | undefined;
    try {
      for (;;) {
        if (clock.monotonic() - this.#lookedAt >= LOOK_MS) await this.#look();
        const stored = this.#firstStored();
        if (stored !== undefined) return stored;
        const [due, at] = this.#firstDue();
        const waitMs = at - clock.monotonic();
        if (waitMs > 0) return { waitMs };
        if (due === undefined) continue;
        telling = due;
        // Before it is read: an event meanwhile is noted anew.
        this.#due.delete(keyOf(due.kind, due.project));
        await this.#tell(due);
        telling = undefined;
      }
    } catch (error) {
      if (telling !== undefined) this.#due.set(keyOf(telling.kind, telling.project), telling);
      // Perhaps only the answer of the store was lost.
      this.#readAgain();
      throw error;
    }
  }

  /** Deletes a message that was answered, or is given up. @throws {StoreError} */
  async done({ id, type, data }: Message): Promise<void> {
    await this.#options.store.forget(this.#receiver.name, id);
    this.#stored = this.#stored.filter(({ message }) => message.id !== id);
    const key = keyOf(KIND_OF[type], 'project' in data ? data.project : '');
    this.#answeredAt.set(key, this.#options.clock.monotonic());
  }

  /** Returns since when something waits, epoch ms; undefined if nothing does. */
  oldestDueAt(): number | undefined {
    let oldest = this.#firstStored()?.createdAt ?? Infinity;
    for (const { project, since } of this.#due.values()) {
      if (project === '' || this.#options.mayTell(project)) oldest = Math.min(oldest, since);
    }
    return Number.isFinite(oldest) ? oldest : undefined;
  }

  /** A message whose project is no longer configured may be sent by every process that finds it: it may name others too. */
  #firstStored(): StoredMessage | undefined {
    const { projects, mayTell } = this.#options;
    return this.#stored.find(({ project }) => mayTell(project) || !projects().has(project));
  }

  /** Returns what is to be looked into first, and when, monotonic ms; no later than the next look. */
  #firstDue(): readonly [due: Due | undefined, at: number] {
    let first: Due | undefined;
    let firstAt = this.#lookedAt + LOOK_MS;
    for (const [key, due] of this.#due) {
      if (due.at >= firstAt || (due.project !== '' && !this.#tells(due.project))) continue;
      const at = Math.max(due.at, (this.#answeredAt.get(key) ?? -Infinity) + GATHER_MS);
      if (at < firstAt) [first, firstAt] = [due, at];
    }
    return [first, firstAt];
  }

  /** Whether this process tells the receiver of the project. */
  #tells(project: string): boolean {
    return this.#watched.has(project) && this.#options.mayTell(project);
  }

  #note(
    kind: NotifyKind,
    project: string,
    { afterMs = 0, since = this.#options.clock.now() } = {},
  ): void {
    const { clock, projects } = this.#options;
    const configured = projects().get(project);
    const isWanted = project === '' || (configured && isFor(this.#receiver, configured));
    if (!isWanted || !this.#receiver.on.includes(kind)) return;
    const key = keyOf(kind, project);
    if (!this.#due.has(key)) {
      this.#due.set(key, { kind, project, since, at: clock.monotonic() + afterMs });
    }
  }

  #noteRecovery(project: string): void {
    if (this.#watched.get(project)?.isStuckTold === true) this.#note('stuck', project);
  }

  /** Looks into failures after this pause, but no later than a minute after the first of them. */
  #awaitOutcomes(due: Due, pauseMs: number): void {
    const { clock } = this.#options;
    const restMs = Math.min(Math.max(due.since + SETTLE_MS - clock.now(), 0), pauseMs);
    due.at = clock.monotonic() + restMs;
  }

  /** Has the next call look for projects that have come, and read the stored messages. */
  #lookAgain(): void {
    this.#isRead = false;
    this.#lookedAt = -Infinity;
  }

  /** Has a project read again, too, if this process polls it. */
  #forget(project: string): void {
    this.#watched.delete(project);
    this.#lookAgain();
  }

  /** Has every project read again. */
  #readAgain(): void {
    this.#watched.clear();
    this.#lookAgain();
  }

  /** Reads of projects that have come, drops those that have gone, and finds what has begun without an event. @throws {StoreError} */
  async #look(): Promise<void> {
    const { projects, mayTell, clock } = this.#options;
    const { on } = this.#receiver;
    const now = clock.monotonic();
    this.#lookedAt = now;
    const ours = new Set<string>();
    for (const [id, project] of projects()) {
      if (mayTell(id) && isFor(this.#receiver, project)) ours.add(id);
    }
    for (const id of this.#watched.keys()) if (!ours.has(id)) this.#watched.delete(id);
    for (const [key, { kind, project }] of this.#due) {
      const isOurs = project === '' || ours.has(project);
      if (!isOurs || !on.includes(kind)) this.#due.delete(key);
    }
    for (const [key, at] of this.#answeredAt) {
      if (at + GATHER_MS <= now) this.#answeredAt.delete(key);
    }
    const taken = Array.from(ours).filter((id) => !this.#watched.has(id));
    if (taken.length > 0 || !this.#isRead) await this.#read(taken);
    if (on.includes('stuck')) {
      for (const [id, watched] of this.#watched) {
        if (this.#conditions.mayBeStuck(id, watched)) this.#note('stuck', id);
      }
    }
    if (on.includes('down')) {
      if (this.#outages().length > 0) this.#note('down', '', { afterMs: OUTAGE_MS });
      else this.#due.delete(keyOf('down', ''));
    }
  }

  /** Reads what the store has of projects that this process polls since recently. @throws {StoreError} */
  async #read(taken: readonly string[]): Promise<void> {
    const { store, clock, projects } = this.#options;
    const { name: receiver, on } = this.#receiver;
    // An event meanwhile can set it back.
    this.#isRead = true;
    await store.subscribe(this.#receiver, clock.now(), projects().values());
    const since = clock.now() - MAX_FOUND_AGE_MS;
    for (const kind of ['failed', 'completed', 'finished'] as const) {
      if (!on.includes(kind)) continue;
      for (let start = 0; start < taken.length; start += PAGE_PROJECTS) {
        const page = taken.slice(start, start + PAGE_PROJECTS);
        for (const { project, at } of await store.firstMoves({ receiver, kind, since }, page)) {
          this.#note(kind, project, { since: at });
        }
      }
    }
    const stuck = await store.toldProjects({ receiver, kind: 'stuck' });
    const down = await store.toldProjects({ receiver, kind: 'down' });
    this.#stored = await store.messages(receiver);
    if (!this.#isRead) return;
    for (const id of taken) {
      const watched = { since: clock.monotonic(), untoldSince: {}, downSince: undefined };
      this.#watched.set(id, { ...watched, isStuckTold: stuck.has(id) });
      this.#noteRecovery(id);
    }
    this.#noteDown(down);
  }

  #noteDown(down: ReadonlyMap<string, number>): void {
    for (const [id, watched] of this.#watched) watched.downSince = down.get(id);
  }

  /** The projects that are down, or no longer, and were not told to be. */
  #outages(): readonly Outage[] {
    const { projects, mayTell } = this.#options;
    return Array.from(this.#watched).flatMap(([id, watched]) => {
      const project = mayTell(id) ? projects().get(id) : undefined;
      return (project && this.#conditions.outageOf(project, watched)) ?? [];
    });
  }

  /** Composes and stores what is due, if there is anything; then it is due no longer, or later. @throws {StoreError} */
  async #tell(due: Due): Promise<void> {
    const { store, projects, isQuiet } = this.#options;
    const { kind } = due;
    const token = await store.token({ receiver: this.#receiver.name, kind });
    // The store has lost the receiver.
    if (token === undefined) return this.#readAgain();
    const project = projects().get(due.project);
    if (project !== undefined && kind !== 'stuck' && kind !== 'down') {
      return await this.#tellMoves(due, { kind, project, token });
    }
    if (kind === 'down') return await this.#tellOutages(token);
    const watched = this.#watched.get(due.project);
    if (project === undefined || watched === undefined) return;
    // What moves on in maintenance is told after it.
    if (isQuiet(project.id)) return this.#note(kind, project.id, { afterMs: LOOK_MS });
    if (watched.isStuckTold && (await this.#tellRecovered(project, watched, token))) return;
    if (this.#conditions.mayBeStuck(project.id, watched))
      await this.#tellStuck(project, watched, token);
  }

  async #tellMoves(
    due: Due,
    { kind, project, token }: { kind: MoveKind; project: ConfiguredProject; token: string },
  ): Promise<void> {
    const { store, clock, onGivenUp } = this.#options;
    const receiver = this.#receiver.name;
    const now = clock.now();
    const untoldUntil = this.#options.untoldUntil(project.id);
    const found = await store.dueMoves({
      receiver,
      kind,
      project: project.id,
      waitsSince: now - SETTLE_MS,
      now,
      since: Math.max(now - MAX_AGE_MS, untoldUntil ?? 0),
      maxMoves: kind === 'finished' ? MAX_EXPERIMENTS : MAX_PROMPTS,
      maxCauses: MAX_CAUSES,
    });
    const { count, old, last, waitsSince } = found;
    if (last !== undefined) {
      const resumedAt = this.#resumedAt.get(project.id);
      const isAfterPause =
        found.moves.some(({ at }) => at === resumedAt) ||
        found.finishes.some(({ endedAt }) => endedAt === resumedAt);
      const message =
        count > 0 ? this.#drafts[kind](project, { ...found, isAfterPause }) : undefined;
      const told = [{ project: project.id, promptId: '', mark: last }];
      if (!(await this.#store({ kind, token, told, message }))) return;
      if (old > 0 && untoldUntil === undefined) onGivenUp({ receiver, kind }, project.id, old);
    }
    if (waitsSince !== undefined) {
      // What was noted meanwhile is later, and waits as well.
      due.since = waitsSince;
      this.#awaitOutcomes(due, SETTLE_MS);
      this.#due.set(keyOf(kind, project.id), due);
    }
  }

  async #tellStuck(project: ConfiguredProject, watched: Watched, token: string): Promise<void> {
    const { store, clock, expectationsOf } = this.#options;
    const { id } = project;
    const stuck: WaitingRow[] = [];
    for (const status of UNFINISHED_STATUSES) {
      const expected = expectationIn(status, expectationsOf(id));
      if (expected?.limitMs === undefined) continue;
      const rows = await store.waiting(this.#receiver.name, id, status);
      const now = clock.now();
      const found = rows.slice(0, MAX_TOLD).filter(({ since }) => isStuck(now - since, expected));
      stuck.push(...found);
      watched.untoldSince[status] = rows[found.length]?.since ?? now - SETTLE_MS;
    }
    if (stuck.length === 0) return;
    stuck.sort((one, other) => one.since - other.since);
    const told = stuck.map(({ promptId, status, since }) => {
      return { project: id, promptId, status, mark: since };
    });
    const message = this.#drafts.stuck(project, stuck);
    if (!(await this.#store({ kind: 'stuck', token, told, message }))) return;
    watched.isStuckTold = true;
    // One can have moved on since it was read.
    this.#note('stuck', id);
  }

  /** Returns whether a message of prompts that are stuck no longer was composed. */
  async #tellRecovered(
    project: ConfiguredProject,
    watched: Watched,
    token: string,
  ): Promise<boolean> {
    const { store } = this.#options;
    const { rows, areOthersTold } = await store.recovered(this.#receiver.name, project.id);
    if (rows.length === 0) return false;
    const told = rows.map(({ promptId }) => ({ project: project.id, promptId, mark: undefined }));
    const message = this.#drafts.recovered(project, rows);
    if (await this.#store({ kind: 'stuck', token, told, message })) {
      watched.isStuckTold = areOthersTold;
      // Others may have moved on, too, or be stuck by now.
      this.#note('stuck', project.id);
    }
    return true;
  }

  async #tellOutages(token: string): Promise<void> {
    const receiver = this.#receiver.name;
    this.#noteDown(await this.#options.store.toldProjects({ receiver, kind: 'down' }));
    const found = this.#outages();
    const over = found.filter(({ until }) => until !== undefined);
    const [type, outages] =
      over.length > 0 ? (['projects.up', over] as const) : (['projects.down', found] as const);
    if (outages.length === 0) return;
    const sorted = outages.toSorted((one, other) => one.since - other.since);
    const told = sorted.map(({ project, since, until }) => {
      return { project: project.id, promptId: '', mark: until === undefined ? since : undefined };
    });
    const message = this.#drafts.outages(type, sorted);
    if (!(await this.#store({ kind: 'down', token, told, message }))) return;
    for (const { project, mark } of told) {
      const watched = this.#watched.get(project);
      if (watched !== undefined) watched.downSince = mark;
    }
  }

  /**
   * Stores a message with what it tells. Returns false if another process has told something of this kind meanwhile: then it is read
   * again.
   */
  async #store(composed: Omit<Composed, 'receiver'>): Promise<boolean> {
    const { told, message } = composed;
    const project = told[0]?.project ?? '';
    const isStored = await this.#options.store.compose({
      receiver: this.#receiver.name,
      ...composed,
    });
    if (!isStored) this.#forget(project);
    else if (message !== undefined) {
      const createdAt = Date.parse(message.timestamp);
      this.#stored = [...this.#stored, { message, createdAt, project }];
    }
    return isStored;
  }
}

function keyOf(kind: string, project: string): string {
  return `${kind} ${project}`;
}
