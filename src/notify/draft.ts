import { randomUUID } from 'node:crypto';
import { causeOf } from '../domain/cause.ts';
import {
  DEFAULT_LIMIT_MS,
  expectationIn,
  type ExpectationsOf,
  type StateExpectation,
} from '../domain/limits.ts';
import { promptUrl } from '../domain/prompt-url.ts';
import { UNFINISHED_STATUSES, type UnfinishedStatus } from '../domain/status.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { PollHealth } from '../monitor/ports/store.ts';
import type { ConfiguredProject } from '../monitor/ports/watched-project.ts';
import {
  type DownProject,
  MAX_CAUSES,
  MAX_PROJECTS,
  MAX_PROMPTS,
  type Message,
  type PromptRef,
  type StuckPrompt,
} from './message.ts';
import type {
  DueMoves,
  MoveQuery,
  MoveRange,
  MoveRow,
  NotifyStore,
  Subscription,
  Told,
  WaitingRow,
} from './ports.ts';
import { cutTo } from './wording.ts';

/** For how long a failure waits for its outcome, ms. */
export const SETTLE_MS = 60_000;
/** Age at which moves are given up, ms. */
export const MAX_AGE_MS = 24 * 60 * 60_000;
/** Maximum length of a text of the service. */
const MAX_TEXT = 300;

export interface DraftOptions {
  readonly store: NotifyStore;
  readonly clock: Pick<Clock, 'now'>;
  readonly health: (project: string) => PollHealth | undefined;
  readonly expectationsOf: ExpectationsOf;
  /** `web.external_url` without a slash at its end, and `service.prompt_url`. */
  readonly addresses: () => {
    readonly externalUrl: string | undefined;
    readonly promptUrl: string | undefined;
  };
}

/** A message that is not stored yet, with what it tells. */
export interface Draft extends Subscription {
  readonly token: string;
  readonly told: readonly Told[];
  /** Undefined if there is nothing to say of it. */
  readonly message: Message | undefined;
  /** The owner of this project sends it. */
  readonly lead: string;
}

/** A project that was polled last at one time, and perhaps again at another. Epoch ms. */
export interface Outage {
  readonly project: ConfiguredProject;
  readonly since: number;
  readonly until: number | undefined;
}

type MoveKind = MoveQuery['kind'];

/** Reads what is to be told, and words nothing. Every method rejects with a {@link StoreError} if the store fails. */
export class Drafts {
  readonly #options: DraftOptions;

  constructor(options: DraftOptions) {
    this.#options = options;
  }

  /** Drafts the message of the moves of a project, from a transition on. Without a draft, none is due. */
  async moves(
    receiver: string,
    kind: MoveKind,
    { project, from }: { readonly project: ConfiguredProject; readonly from: number },
  ): Promise<{ readonly found: DueMoves; readonly draft: Draft | undefined } | undefined> {
    const { store, clock } = this.#options;
    const now = clock.now();
    const found = await store.dueMoves({
      receiver,
      kind,
      project: project.id,
      from,
      waitsSince: now - SETTLE_MS,
      now,
      since: now - MAX_AGE_MS,
    });
    if (found?.last === undefined) return found && { found, draft: undefined };
    const { token, first, last, count } = found;
    const range = { kind, project: project.id, last };
    const message =
      first === undefined
        ? undefined
        : await this.#movesMessage(project, { ...range, first }, count);
    const told = [{ project: project.id, promptId: '', mark: last }];
    return { found, draft: { receiver, kind, token, told, message, lead: project.id } };
  }

  /**
   * Drafts the message of prompts that are stuck. `next` has for each status the time since which prompts are in it that can be
   * stuck next. Undefined if the subscription is gone.
   */
  async stuck(
    receiver: string,
    project: ConfiguredProject,
  ): Promise<
    | {
        readonly draft: Draft | undefined;
        readonly next: ReadonlyMap<UnfinishedStatus, number>;
      }
    | undefined
  > {
    const { store, clock } = this.#options;
    const { id } = project;
    const now = clock.now();
    const rows: WaitingRow[] = [];
    const next = new Map<UnfinishedStatus, number>();
    let token: string | undefined;
    for (const status of UNFINISHED_STATUSES) {
      const { limitMs } = this.expected(id, status) ?? {};
      if (limitMs === undefined) continue;
      const found = await store.stuck(receiver, id, status, now - limitMs);
      if (found === undefined) return undefined;
      token ??= found.token;
      rows.push(...found.rows);
      next.set(status, found.nextSince ?? now - SETTLE_MS);
    }
    if (token === undefined || rows.length === 0) return { draft: undefined, next };
    rows.sort((one, other) => one.since - other.since);
    const told = rows.map(({ promptId, status, since }) => {
      return { project: id, promptId, status, mark: since };
    });
    const prompts = rows.slice(0, MAX_PROMPTS).map((row) => this.#stuckPrompt(project, row));
    const data = { ...this.#projectRef(project), count: rows.length, prompts };
    const message = { ...this.#head(), type: 'prompts.stuck' as const, data };
    return { draft: { receiver, kind: 'stuck', token, told, message, lead: id }, next };
  }

  /** Drafts the message of prompts that were stuck and are no longer. */
  async recovered(
    receiver: string,
    project: ConfiguredProject,
  ): Promise<{ readonly draft: Draft; readonly areOthersTold: boolean } | undefined> {
    const { store, clock } = this.#options;
    const { id } = project;
    const now = clock.now();
    const found = await store.recovered(receiver, id);
    if (found === undefined || found.rows.length === 0) return undefined;
    const { token, rows, areOthersTold } = found;
    const told = rows.map(({ promptId }) => ({ project: id, promptId, mark: undefined }));
    const prompts = rows.slice(0, MAX_PROMPTS).map((row) => ({
      ...this.#stuckPrompt(project, row),
      until: iso(row.next?.since ?? now),
      to: row.next?.status ?? null,
    }));
    const data = { ...this.#projectRef(project), count: rows.length, prompts };
    const message = { ...this.#head(), type: 'prompts.recovered' as const, data };
    const draft: Draft = { receiver, kind: 'stuck', token, told, message, lead: id };
    return { draft, areOthersTold };
  }

  /** Drafts the message of projects that are down, or up again. */
  projects(
    receiver: string,
    kind: 'down' | 'up',
    { token, outages }: { readonly token: string; readonly outages: readonly Outage[] },
  ): Draft | undefined {
    const sorted = outages.toSorted((one, other) => one.since - other.since);
    const [lead] = sorted;
    if (lead === undefined) return undefined;
    const { externalUrl } = this.#options.addresses();
    const data = {
      url: externalUrl === undefined ? null : `${externalUrl}/`,
      count: sorted.length,
      projects: sorted.slice(0, MAX_PROJECTS).map((each) => this.#downProject(each)),
    };
    const message: Message = { ...this.#head(), type: `projects.${kind}`, data };
    const told = sorted.map(({ project, since }) => {
      return { project: project.id, promptId: '', mark: kind === 'up' ? undefined : since };
    });
    return { receiver, kind: 'down', token, told, message, lead: lead.project.id };
  }

  expected(project: string, status: UnfinishedStatus): StateExpectation | undefined {
    return expectationIn(status, this.#options.expectationsOf(project));
  }

  async #movesMessage(
    project: ConfiguredProject,
    range: MoveRange,
    count: number,
  ): Promise<Message> {
    const { store } = this.#options;
    const rows = await store.moves(range, MAX_PROMPTS);
    const data = { ...this.#projectRef(project), count };
    if (range.kind === 'completed') {
      const prompts = rows.map((row) => this.#promptRef(project, row));
      return { ...this.#head(), type: 'prompts.completed', data: { ...data, prompts } };
    }
    const found = await store.causes(range, MAX_CAUSES);
    const causes = found.map(({ cause, count: failures, errorInfo }) => {
      const { shape } = causeOf(errorInfo);
      return { cause, error_id: errorInfo?.error_id ?? null, shape, count: failures };
    });
    const prompts = rows.map((row) => ({ ...this.#promptRef(project, row), ...outcomeOf(row) }));
    return { ...this.#head(), type: 'prompts.failed', data: { ...data, prompts, causes } };
  }

  #head() {
    const timestamp = iso(this.#options.clock.now());
    return { schema: 1 as const, id: randomUUID(), timestamp };
  }

  #projectRef({ id, team }: ConfiguredProject) {
    const { externalUrl } = this.#options.addresses();
    const path = `/projects/${encodeURIComponent(id.toWellFormed())}`;
    return {
      project: id,
      team: team === '' ? null : team,
      url: externalUrl === undefined ? null : `${externalUrl}${path}`,
    };
  }

  #promptRef(
    { id: project }: ConfiguredProject,
    { promptId, promptName }: Pick<WaitingRow, 'promptId' | 'promptName'>,
  ): PromptRef {
    const { promptUrl: template } = this.#options.addresses();
    const url = template === undefined ? undefined : promptUrl(template, { project, promptId });
    return { prompt_id: promptId, prompt_name: promptName ?? null, url: url ?? null };
  }

  #stuckPrompt(project: ConfiguredProject, row: WaitingRow): StuckPrompt {
    const { status, since } = row;
    const limitMs = this.expected(project.id, status)?.limitMs ?? DEFAULT_LIMIT_MS[status];
    const prompt = { ...this.#promptRef(project, row), status, since: iso(since) };
    return { ...prompt, limit_seconds: limitMs / 1000, until: null, to: null };
  }

  #downProject({ project, since, until }: Outage): DownProject {
    const { reason, failure } = until === undefined ? (this.#options.health(project.id) ?? {}) : {};
    return {
      ...this.#projectRef(project),
      since: iso(since),
      until: until === undefined ? null : iso(until),
      reason: reason ?? null,
      status_code: failure?.statusCode ?? null,
      detail: failure?.detail === undefined ? null : cutTo(failure.detail, MAX_TEXT),
    };
  }
}

function iso(at: number): string {
  return new Date(at).toISOString();
}

function outcomeOf({ at, errorInfo, reason, cause }: MoveRow) {
  const { error_id = null, error_msg = null } = errorInfo ?? {};
  const shown = { error_id, error_msg: error_msg === null ? null : cutTo(error_msg, MAX_TEXT) };
  return {
    time: iso(at),
    error_info: errorInfo === undefined ? null : shown,
    reason: reason ?? null,
    cause: cause ?? null,
  };
}
