import { randomUUID } from 'node:crypto';
import { causeOf } from '../domain/cause.ts';
import { DEFAULT_LIMIT_MS, expectationIn } from '../domain/limits.ts';
import { experimentPath, projectPath, promptPath } from '../domain/page-path.ts';
import { promptUrl } from '../domain/prompt-url.ts';
import type { ConfiguredProject } from '../monitor/ports/watched-project.ts';
import { finishFields } from '../rows/fields.ts';
import type { ConditionOptions, Outage } from './conditions.ts';
import {
  type DownProject,
  type FinishedExperiment,
  MAX_PROJECTS,
  MAX_PROMPTS,
  type Message,
  type PromptRef,
  type StuckPrompt,
} from './message.ts';
import type {
  CauseRow,
  DueMoves,
  FinishedRow,
  MoveRow,
  RecoveredRow,
  WaitingRow,
} from './ports.ts';
import { cutTo } from './wording.ts';

/** Maximum length of a text of the service. */
const MAX_TEXT = 300;

export interface DraftOptions extends Pick<
  ConditionOptions,
  'clock' | 'health' | 'expectationsOf'
> {
  /** `web.external_url` without a slash at its end, and `service.prompt_url`. */
  readonly addresses: () => {
    readonly externalUrl: string | undefined;
    readonly promptUrl: string | undefined;
  };
}

/** What is due, and whether the first poll after a pause found some of it. */
interface Found extends DueMoves {
  readonly isAfterPause: boolean;
}

/** Makes messages of what the store has, and words nothing. */
export class Drafts {
  readonly #options: DraftOptions;

  constructor(options: DraftOptions) {
    this.#options = options;
  }

  failed(project: ConfiguredProject, found: Found): Message {
    const { moves, causes } = found;
    const prompts = moves.map((row) => ({ ...this.#promptRef(project, row), ...outcomeOf(row) }));
    const data = { ...this.#about(project, found), prompts, causes: causesOf(causes) };
    return { ...this.#head(), type: 'prompts.failed', data };
  }

  completed(project: ConfiguredProject, found: Found): Message {
    const prompts = found.moves.map((row) => this.#promptRef(project, row));
    const data = { ...this.#about(project, found), prompts };
    return { ...this.#head(), type: 'prompts.completed', data };
  }

  finished(project: ConfiguredProject, found: Found): Message {
    const { externalUrl } = this.#options.addresses();
    const experiments = found.finishes.map((row) => finishedExperiment(row, externalUrl));
    const data = { ...this.#about(project, found), experiments };
    return { ...this.#head(), type: 'experiments.finished', data };
  }

  stuck(project: ConfiguredProject, rows: readonly WaitingRow[]): Message {
    const prompts = rows.slice(0, MAX_PROMPTS).map((row) => this.#stuckPrompt(project, row));
    const data = { ...this.#projectRef(project), count: rows.length, prompts };
    return { ...this.#head(), type: 'prompts.stuck', data };
  }

  /** Returns the message of prompts that were stuck and are no longer. */
  recovered(project: ConfiguredProject, rows: readonly RecoveredRow[]): Message {
    const prompts = rows.slice(0, MAX_PROMPTS).map((row) => ({
      ...this.#stuckPrompt(project, row),
      until: iso(row.nextSince ?? this.#options.clock.now()),
      to: row.nextStatus ?? null,
    }));
    const data = { ...this.#projectRef(project), count: rows.length, prompts };
    return { ...this.#head(), type: 'prompts.recovered', data };
  }

  /** Returns the message of projects that are down, or up again. */
  outages(type: 'projects.down' | 'projects.up', outages: readonly Outage[]): Message {
    const { externalUrl } = this.#options.addresses();
    const data = {
      url: externalUrl === undefined ? null : `${externalUrl}/`,
      count: outages.length,
      projects: outages.slice(0, MAX_PROJECTS).map((each) => this.#downProject(each)),
    };
    return { ...this.#head(), type, data };
  }

  #head() {
    const timestamp = iso(this.#options.clock.now());
    return { schema: 1 as const, id: randomUUID(), timestamp };
  }

  #about(project: ConfiguredProject, { count, isAfterPause }: Found) {
    return { ...this.#projectRef(project), count, after_pause: isAfterPause };
  }

  #projectRef({ id, team }: ConfiguredProject) {
    const { externalUrl } = this.#options.addresses();
    return {
      project: id,
      team: team === '' ? null : team,
      url: pageUrl(externalUrl, projectPath(id)),
    };
  }

  #promptRef(
    { id: project }: ConfiguredProject,
    { promptId, promptName }: Pick<WaitingRow, 'promptId' | 'promptName'>,
  ): PromptRef {
    const { promptUrl: template, externalUrl } = this.#options.addresses();
    const atService = template && promptUrl(template, { project, promptId });
    const url = atService || pageUrl(externalUrl, promptPath(project, promptId));
    return { prompt_id: promptId, prompt_name: promptName ?? null, url };
  }

  #stuckPrompt(project: ConfiguredProject, row: WaitingRow): StuckPrompt {
    const { status, since } = row;
    const expectation = expectationIn(status, this.#options.expectationsOf(project.id));
    const limitMs = expectation?.limitMs ?? DEFAULT_LIMIT_MS[status];
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

function pageUrl(externalUrl: string | undefined, path: string | undefined): string | null {
  return externalUrl === undefined || path === undefined ? null : `${externalUrl}/${path}`;
}

function finishedExperiment(row: FinishedRow, externalUrl: string | undefined): FinishedExperiment {
  const { project, experiment, prompts, first_move, ended, duration_seconds } = finishFields(row);
  return {
    experiment,
    url: pageUrl(externalUrl, experimentPath(project, experiment)),
    first_move,
    ended,
    duration_seconds,
    prompts,
    causes: causesOf(row.causes),
  };
}

function causesOf(rows: readonly CauseRow[]) {
  return rows.map(({ cause, count, errorInfo }) => {
    const { shape } = causeOf(errorInfo);
    return { cause, error_id: errorInfo?.error_id ?? null, shape, count };
  });
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
