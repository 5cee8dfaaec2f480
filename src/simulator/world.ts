import { createHash } from 'node:crypto';

/** Error of a failed prompt, in the format of the service. */
export interface ErrorInfo {
  readonly error_id: string;
  readonly error_msg: string;
}

/** A prompt with the fields of both its representations: the item of a listing and the single prompt. */
export interface Prompt {
  readonly id: string;
  readonly name: string;
  /** ISO 8601. */
  readonly timestamp: string;
  readonly llm: string;
  readonly dataset: string;
  readonly experiment: string | null;
  readonly task_description: string;
  readonly metric: string;
  readonly history: readonly { readonly status: string; readonly timestamp: string }[];
  readonly status: string;
  readonly error_info: ErrorInfo | null;
}

export interface Dataset {
  readonly id: string;
  readonly name: string;
  readonly size: number;
  readonly manifest: object;
  readonly status: string | undefined;
}

type Kind = 'prompt' | 'dataset';

/** The body of a listing, with its ETag. */
export interface Listing {
  readonly body: Buffer;
  readonly etag: string;
}

interface Project {
  readonly prompts: Map<string, Prompt>;
  readonly datasets: Map<string, Dataset>;
  /** Listings since the last change. */
  readonly listings: Map<Kind, Listing>;
}

const HISTORY_LENGTH = 20;

/** The projects, prompts and datasets of a simulated service. Records are immutable; a change replaces a record. */
export class World {
  readonly now: () => number;
  readonly #projects: ReadonlyMap<string, Project>;
  /** Project of each prompt. The service is asked for a prompt by its id alone, so ids are unique among all projects. */
  readonly #projectOfPrompt = new Map<string, string>();
  #created = 0;

  /** @param now returns the time, epoch ms */
  constructor(projects: readonly string[], now: () => number = Date.now) {
    this.now = now;
    this.#projects = new Map(
      projects.map((id) => [
        id,
        { prompts: new Map(), datasets: new Map(), listings: new Map() } satisfies Project,
      ]),
    );
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

  /** Returns the project of a prompt; undefined for an unknown prompt. */
  projectOf(promptId: string): string | undefined {
    return this.#projectOfPrompt.get(promptId);
  }

  /** Returns the same object until a record of the listing changes. */
  listing(project: string, kind: Kind): Listing | undefined {
    const found = this.#projects.get(project);
    if (found === undefined) return undefined;
    let listing = found.listings.get(kind);
    if (listing === undefined) {
      const items =
        kind === 'prompt' ? found.prompts.values().map(listItem) : found.datasets.values();
      const body = Buffer.from(JSON.stringify([...items]));
      listing = { body, etag: `"${createHash('sha1').update(body).digest('base64url')}"` };
      found.listings.set(kind, listing);
    }
    return listing;
  }

  /** Adds a PENDING prompt, with these fields instead of its own, and returns its id. It replaces one with the same id. */
  addPrompt(project: string, fields: Partial<Prompt> = {}): string {
    this.#created += 1;
    const id = fields.id ?? `prompt-${String(this.#created).padStart(6, '0')}`;
    const { status = 'PENDING', timestamp = this.#timestamp() } = fields;
    const { datasets } = this.#project(project);
    this.#put(project, {
      id,
      name: `prompt #${this.#created}`,
      timestamp,
      llm: 'atlas-large-2',
      dataset: datasets.keys().next().value ?? 'dataset-1',
      experiment: null,
      task_description: 'Answer the question.',
      metric: 'exact_match',
      history: [{ status, timestamp }],
      status,
      error_info: null,
      ...fields,
    });
    this.#projectOfPrompt.set(id, project);
    return id;
  }

  /** @throws {Error} for an unknown prompt */
  setStatus(id: string, status: string, errorInfo: ErrorInfo | null = null): void {
    const project = this.#projectOfPrompt.get(id) ?? '';
    const before = this.#project(project).prompts.get(id);
    if (before === undefined) throw new Error(`There is no prompt "${id}".`);
    const timestamp = this.#timestamp();
    const history = [...before.history, { status, timestamp }].slice(-HISTORY_LENGTH);
    this.#put(project, { ...before, status, timestamp, history, error_info: errorInfo });
  }

  removePrompt(id: string): void {
    const { prompts, listings } = this.#project(this.#projectOfPrompt.get(id) ?? '');
    prompts.delete(id);
    listings.delete('prompt');
    this.#projectOfPrompt.delete(id);
  }

  /** Adds a dataset, or replaces the one with its id. */
  putDataset(project: string, dataset: Dataset): void {
    const { datasets, listings } = this.#project(project);
    datasets.set(dataset.id, dataset);
    listings.delete('dataset');
  }

  setDatasetStatus(project: string, id: string, status: string | undefined): void {
    const dataset = this.#project(project).datasets.get(id);
    if (dataset !== undefined) this.putDataset(project, { ...dataset, status });
  }

  #put(project: string, prompt: Prompt): void {
    const { prompts, listings } = this.#project(project);
    prompts.set(prompt.id, prompt);
    listings.delete('prompt');
  }

  #project(id: string): Project {
    const project = this.#projects.get(id);
    if (project === undefined) throw new Error(`There is no project "${id}".`);
    return project;
  }

  #timestamp(): string {
    return new Date(this.now()).toISOString();
  }
}

/** Returns a prompt as an item of a listing: without llm, history and error_info. */
function listItem(prompt: Prompt): object {
  const { id, name, timestamp, dataset, experiment, task_description, metric, status } = prompt;
  return { id, name, timestamp, dataset, experiment, task_description, metric, status };
}
