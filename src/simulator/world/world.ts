import {
  arrivalStatus,
  DEFAULT_RATES,
  initialStatus,
  nextDatasetStatus,
  nextStatus,
  type Rates,
} from './status-changes.ts';
import { createMoveLog, type Move } from './moves.ts';
import { createRandom, type Random } from '../random.ts';
import {
  type Dataset,
  type Kind,
  makeDataset,
  makePrompt,
  movePrompt,
  noErrorInfo,
  type Prompt,
} from './records.ts';
import type { ErrorInfo } from './error-info.ts';
import { DEFAULT_PROJECTS, ERRORS, nth, ODD_IDS } from './sample-texts.ts';

export interface WorldOptions {
  /** Returns the wall time, epoch ms. It is the time of the moves and does not influence which ones happen. */
  readonly now: () => number;
  /** The same seed and the same options give the same moves. Default 1. */
  readonly seed?: number | undefined;
  /** Default {@link DEFAULT_PROJECTS}. */
  readonly projects?: readonly string[] | undefined;
  /** Default {@link DEFAULT_PROMPTS_PER_PROJECT}. */
  readonly promptsPerProject?: number | undefined;
  /** Default 3; every third has no status. */
  readonly datasetsPerProject?: number | undefined;
  readonly rates?: Partial<Rates> | undefined;
  /** Whether the first prompts get ids with spaces, slashes, percent signs and the like. Default false. */
  readonly oddIds?: boolean | undefined;
}

interface Project {
  readonly prompts: Map<string, Prompt>;
  readonly datasets: Map<string, Dataset>;
  readonly version: Record<Kind, number>;
  /** Prompts that were removed last and may come back. */
  readonly removed: Prompt[];
}

export const DEFAULT_PROMPTS_PER_PROJECT = 12;
const MAX_REMOVED = 20;
const MAX_STUCK_SHARE = 0.05;

/** The projects, prompts and datasets of a simulated service. Records are immutable; a move replaces a record. */
export class World {
  readonly now: () => number;
  readonly #random: Random;
  readonly #rates: Rates;
  readonly #targetSize: number;
  readonly #projects = new Map<string, Project>();
  /** Project of each prompt. Ids of prompts are unique among all projects, because the service is asked for a prompt by its id alone. */
  readonly #projectOfPrompt = new Map<string, string>();
  readonly #stuck = new Set<string>();
  readonly #oddIds: string[];
  #moves = createMoveLog();
  #created = 0;

  constructor(options: WorldOptions) {
    this.now = options.now;
    this.#random = createRandom(options.seed ?? 1);
    this.#rates = { ...DEFAULT_RATES, ...options.rates };
    this.#targetSize = options.promptsPerProject ?? DEFAULT_PROMPTS_PER_PROJECT;
    this.#oddIds = options.oddIds === true ? [...ODD_IDS] : [];
    for (const project of options.projects ?? DEFAULT_PROJECTS) {
      this.addProject(project);
      for (let n = 1; n <= (options.datasetsPerProject ?? 3); n += 1) {
        this.addDataset(project, { status: n % 3 === 0 ? undefined : initialStatus(this.#random) });
      }
      for (let n = 1; n <= this.#targetSize; n += 1) {
        this.addPrompt(project, { status: initialStatus(this.#random) });
      }
    }
    // The initial records are no moves.
    this.#moves = createMoveLog();
  }

  get projects(): readonly string[] {
    return [...this.#projects.keys()];
  }

  /** Returns the prompts of a project by id, in order of arrival; undefined for an unknown project. */
  prompts(project: string): ReadonlyMap<string, Prompt> | undefined {
    return this.#projects.get(project)?.prompts;
  }

  datasets(project: string): ReadonlyMap<string, Dataset> | undefined {
    return this.#projects.get(project)?.datasets;
  }

  /** Returns a number that grows with each change of the listing. */
  version(project: string, kind: Kind): number {
    return this.#project(project).version[kind];
  }

  projectOfPrompt(id: string): string | undefined {
    return this.#projectOfPrompt.get(id);
  }

  /** Returns the moves after number `seq`, oldest first. Only the last 100,000 or more are kept. */
  moves(seq = 0): readonly Move[] {
    return this.#moves.after(seq);
  }

  /** Makes one step: prompts start, finish, run again, arrive, disappear and come back. */
  step(): void {
    for (const [id, project] of this.#projects) {
      for (const prompt of project.prompts.values()) this.#advance(id, prompt);
      for (const dataset of project.datasets.values()) {
        const status = nextDatasetStatus(dataset.status, this.#random, this.#rates);
        if (status !== undefined) this.setDatasetStatus(id, dataset.id, status);
      }
      this.#replacePrompts(id, project);
    }
  }

  addProject(project: string): void {
    if (this.#projects.has(project)) throw new Error(`Project "${project}" exists already.`);
    this.#projects.set(project, {
      prompts: new Map(),
      datasets: new Map(),
      version: { prompt: 0, dataset: 0 },
      removed: [],
    });
  }

  /**
   * Adds a prompt and returns its id. Fields that `fields` lacks are generated.
   * @throws {Error} for an unknown project, or if any project has a prompt with this id
   */
  addPrompt(project: string, fields: Partial<Prompt> = {}): string {
    const { datasets } = this.#project(project);
    const id = fields.id ?? this.#freshId();
    this.#created += 1;
    const n = this.#created;
    const status = fields.status ?? 'PENDING';
    const dataset = [...datasets.keys()][n % datasets.size] ?? 'dataset-0000';
    const made = makePrompt({ n, id, dataset, status, timestamp: this.#timestamp() });
    this.#insert(project, { ...made, error_info: this.#errorInfo(status), ...fields });
    return id;
  }

  /**
   * Sets the status of a prompt to any text. Without `errorInfo` a FAILED prompt gets a sample one; null means none.
   * @throws {Error} for an unknown prompt
   */
  setStatus(project: string, id: string, status: string, errorInfo?: ErrorInfo | null): void {
    const before = this.#prompt(project, id);
    const info = errorInfo === undefined ? this.#errorInfo(status) : errorInfo;
    this.#project(project).prompts.set(id, movePrompt(before, status, this.#timestamp(), info));
    this.#recordMove(project, 'prompt', id, before.status, status);
  }

  /** @throws {Error} for an unknown prompt */
  removePrompt(project: string, id: string): void {
    const before = this.#prompt(project, id);
    const { prompts, removed } = this.#project(project);
    prompts.delete(id);
    this.#projectOfPrompt.delete(id);
    this.#stuck.delete(id);
    removed.push(before);
    if (removed.length > MAX_REMOVED) removed.shift();
    this.#recordMove(project, 'prompt', id, before.status, 'ABSENT');
  }

  /** Adds a dataset and returns its id. */
  addDataset(project: string, fields: Partial<Dataset> = {}): string {
    const datasets = this.#project(project).datasets;
    this.#created += 1;
    const id = fields.id ?? `dataset-${String(this.#created).padStart(4, '0')}`;
    if (datasets.has(id)) throw new Error(`Dataset "${id}" exists already.`);
    datasets.set(id, { ...makeDataset(this.#created, id, undefined), ...fields });
    this.#recordMove(project, 'dataset', id, 'ABSENT', fields.status ?? 'NONE');
    return id;
  }

  /** @throws {Error} for an unknown dataset */
  setDatasetStatus(project: string, id: string, status: string | undefined): void {
    const before = this.#dataset(project, id);
    this.#project(project).datasets.set(id, { ...before, status });
    this.#recordMove(project, 'dataset', id, before.status ?? 'NONE', status ?? 'NONE');
  }

  /** @throws {Error} for an unknown dataset */
  removeDataset(project: string, id: string): void {
    const before = this.#dataset(project, id);
    this.#project(project).datasets.delete(id);
    this.#recordMove(project, 'dataset', id, before.status ?? 'NONE', 'ABSENT');
  }

  #advance(project: string, prompt: Prompt): void {
    if (this.#stuck.has(prompt.id)) return;
    const status = nextStatus(prompt.status, this.#random, this.#rates);
    if (status === undefined) return;
    this.setStatus(project, prompt.id, status);
    const mayStick = this.#stuck.size < this.#projectOfPrompt.size * MAX_STUCK_SHARE;
    if (status === 'RUNNING' && this.#random.chance(this.#rates.stick) && mayStick) {
      this.#stuck.add(prompt.id);
    }
  }

  /** Adds and removes prompts. Removals are in proportion to the size, so that the size stays near the initial one. */
  #replacePrompts(id: string, project: Project): void {
    const { arrivals, comeBack } = this.#rates;
    const target = Math.max(1, this.#targetSize);
    for (let n = this.#random.roundRandomly(arrivals); n > 0; n -= 1) {
      const status = arrivalStatus(this.#random);
      const back = this.#random.chance(comeBack) ? project.removed.shift() : undefined;
      if (back === undefined || this.#projectOfPrompt.has(back.id)) this.addPrompt(id, { status });
      else this.#insert(id, movePrompt(back, status, this.#timestamp(), this.#errorInfo(status)));
    }
    const removals = this.#random.roundRandomly((arrivals * project.prompts.size) / target);
    for (let n = Math.min(removals, project.prompts.size); n > 0; n -= 1) {
      const [first, ...others] = project.prompts.keys();
      if (first !== undefined) this.removePrompt(id, this.#random.pick([first, ...others]));
    }
  }

  #freshId(): string {
    const id = this.#oddIds.shift() ?? `prompt-${String(this.#created + 1).padStart(6, '0')}`;
    if (!this.#projectOfPrompt.has(id)) return id;
    this.#created += 1;
    return this.#freshId();
  }

  #insert(project: string, prompt: Prompt): void {
    const { id, status } = prompt;
    if (this.#projectOfPrompt.has(id)) throw new Error(`Prompt "${id}" exists already.`);
    this.#project(project).prompts.set(id, prompt);
    this.#projectOfPrompt.set(id, project);
    this.#recordMove(project, 'prompt', id, 'ABSENT', status);
  }

  #project(id: string): Project {
    const project = this.#projects.get(id);
    if (project === undefined) throw new Error(`There is no project "${id}".`);
    return project;
  }

  #prompt(project: string, id: string): Prompt {
    const prompt = this.#project(project).prompts.get(id);
    if (prompt === undefined) throw new Error(`Project "${project}" has no prompt "${id}".`);
    return prompt;
  }

  #dataset(project: string, id: string): Dataset {
    const dataset = this.#project(project).datasets.get(id);
    if (dataset === undefined) throw new Error(`Project "${project}" has no dataset "${id}".`);
    return dataset;
  }

  #errorInfo(status: string): ErrorInfo | null | undefined {
    return status === 'FAILED' ? nth(ERRORS, this.#moves.length) : noErrorInfo(this.#moves.length);
  }

  #timestamp(): string {
    return new Date(this.now()).toISOString();
  }

  #recordMove(project: string, kind: Kind, id: string, from: string, to: string): void {
    this.#project(project).version[kind] += 1;
    if (from !== to) this.#moves.add({ project, kind, id, from, to, at: this.now() });
  }
}
