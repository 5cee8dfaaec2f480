import { World, type Prompt } from '../src/simulator/world.ts';
import { randomNumbers } from './random.ts';

/** Rates of change: probabilities for each prompt and step, except where noted. */
export interface Rates {
  /** PENDING to RUNNING. */
  readonly start: number;
  /** RUNNING to COMPLETED or FAILED. */
  readonly finish: number;
  /** Share of finishing prompts that fail. */
  readonly fail: number;
  /** COMPLETED or FAILED to PENDING or RUNNING. */
  readonly rerun: number;
  /** Number of new prompts per project and step. As many are removed, so that a project keeps its size. */
  readonly arrivals: number;
  /** Share of new prompts that are removed ones coming back. */
  readonly comeBack: number;
  /** Change of a dataset to its next status. */
  readonly dataset: number;
}

/** Statuses of the initial records and of new prompts, by frequency. Some new ones finish before the next poll. */
const INITIAL = 'PENDING PENDING RUNNING RUNNING COMPLETED COMPLETED COMPLETED FAILED'.split(' ');
const ARRIVING = 'PENDING PENDING PENDING RUNNING COMPLETED FAILED'.split(' ');
const MAX_REMOVED = 20;
/** Probability, for each project and step, that prompts of an experiment get another one. */
const REGROUP = 0.02;

/** Valid ids that careless clients handle wrongly. */
const ODD_IDS: readonly string[] = [
  'prompt with spaces',
  'nested/prompt/1',
  '100%',
  '%2F',
  'ünïcode-提示-🚀',
  `"quoted" 'twice'`,
  'back\\slash',
  'query?x=1#fragment',
  'a+b&c=d;e',
  '<script>alert(1)</script>',
  '__proto__',
  'constructor',
  ' leading and trailing ',
  '..',
  'x'.repeat(512),
];

export interface RandomWorldOptions {
  readonly projects: readonly string[];
  readonly now: () => number;
  readonly seed: number;
  readonly promptsPerProject: number;
  readonly datasetsPerProject: number;
  readonly rates: Rates;
  /** Number of experiments of each project at a time, with changing names and prompts. By default prompts have none. */
  readonly experiments?: number;
  /** Whether the first prompts get ids with spaces, slashes, percent signs and the like. Default false. */
  readonly oddIds?: boolean;
}

/** A world in which anything can happen at any time, in an order from the seed. */
export class RandomWorld extends World {
  readonly #random: () => number;
  readonly #rates: Rates;
  readonly #size: number;
  readonly #oddIds: string[];
  /** Prompts that were removed last and may come back, by project. */
  readonly #removed: ReadonlyMap<string, Prompt[]>;
  /** Names of the experiments of each project now; null stands for none. */
  readonly #experiments: ReadonlyMap<string, (string | null)[]>;
  #named = 0;
  #errors = 0;

  constructor(options: RandomWorldOptions) {
    const { projects, now, seed, rates, promptsPerProject, datasetsPerProject } = options;
    super(projects, now);
    this.#random = randomNumbers(seed);
    this.#rates = rates;
    this.#size = promptsPerProject;
    this.#oddIds = options.oddIds === true ? [...ODD_IDS] : [];
    this.#removed = new Map(projects.map((id) => [id, []]));
    const { experiments = 0 } = options;
    this.#experiments = new Map(
      projects.map((id) => [
        id,
        [null, ...Array.from({ length: experiments }, () => this.#name())],
      ]),
    );
    for (const project of projects) {
      for (let n = 1; n <= datasetsPerProject; n += 1) {
        // Every third has no status, and never gets one.
        const status = n % 3 === 0 ? undefined : this.#pick(INITIAL);
        const id = `dataset-${n}`;
        this.putDataset(project, { id, name: `data ${n}`, size: n, manifest: {}, status });
      }
      for (let n = 1; n <= promptsPerProject; n += 1) this.#add(project, this.#pick(INITIAL));
    }
  }

  /** Makes one step: prompts start, finish, run again, arrive, disappear and come back. */
  step(): void {
    for (const project of this.projects) {
      for (const { id, status } of this.prompts(project)?.values() ?? []) {
        const next = this.#next(status, this.#rates);
        if (next !== undefined) this.#move(id, next);
      }
      for (const { id, status } of this.datasets(project)?.values() ?? []) {
        if (status === undefined || !this.#chance(this.#rates.dataset)) continue;
        const next = this.#next(status, { ...this.#rates, start: 1, finish: 1, rerun: 1 });
        this.setDatasetStatus(project, id, next);
      }
      this.#replacePrompts(project);
      this.#regroup(project);
    }
  }

  #next(status: string, { start, finish, fail, rerun }: Rates): string | undefined {
    if (status === 'PENDING') return this.#chance(start) ? 'RUNNING' : undefined;
    if (status !== 'RUNNING') {
      return this.#chance(rerun) ? this.#pick(['PENDING', 'RUNNING']) : undefined;
    }
    if (!this.#chance(finish)) return undefined;
    return this.#chance(fail) ? 'FAILED' : 'COMPLETED';
  }

  /** Adds and removes prompts. Removals are in proportion to the size, so that the size stays near the initial one. */
  #replacePrompts(project: string): void {
    const { arrivals, comeBack } = this.#rates;
    const removed = this.#removed.get(project) ?? [];
    for (let n = this.#round(arrivals); n > 0; n -= 1) {
      const status = this.#pick(ARRIVING);
      const back = this.#chance(comeBack) ? removed.shift() : undefined;
      if (back === undefined) this.#add(project, status);
      else {
        this.addPrompt(project, back);
        this.#move(back.id, status);
      }
    }
    const count = this.prompts(project)?.size ?? 0;
    for (let n = this.#round((arrivals * count) / this.#size); n > 0; n -= 1) {
      const prompts = [...(this.prompts(project)?.values() ?? [])];
      if (prompts.length === 0) return;
      const prompt = this.#pick(prompts);
      this.removePrompt(prompt.id);
      removed.push(prompt);
      if (removed.length > MAX_REMOVED) removed.shift();
    }
  }

  /** Sometimes gives some or all prompts of an experiment another one, which is new or has others. */
  #regroup(project: string): void {
    const names = this.#experiments.get(project) ?? [];
    if (names.length < 2 || !this.#chance(REGROUP)) return;
    const place = Math.floor(this.#random() * names.length);
    const [from = null] = names.slice(place);
    const isRenamed = from !== null && this.#chance(0.5);
    const to = isRenamed ? this.#name() : this.#pick(names);
    if (isRenamed) names[place] = to;
    for (const prompt of this.prompts(project)?.values() ?? []) {
      if (prompt.experiment === from && (isRenamed || this.#chance(0.5))) {
        this.addPrompt(project, { ...prompt, experiment: to });
      }
    }
  }

  #name(): string {
    this.#named += 1;
    return `experiment ${this.#named}`;
  }

  #add(project: string, status: string): void {
    const id = this.#oddIds.shift();
    const names = this.#experiments.get(project) ?? [];
    const experiment = names.length > 1 ? this.#pick(names) : null;
    const fields = { ...(id !== undefined && { id }), status, experiment };
    this.#move(this.addPrompt(project, fields), status);
  }

  /** Gives a FAILED prompt one of a few errors. */
  #move(id: string, status: string): void {
    if (status !== 'FAILED') return this.setStatus(id, status);
    this.#errors += 1;
    const n = this.#errors % 8;
    const error = { error_id: `ERROR_${n}`, error_msg: `Row ${n} has the error\n\tnumber "${n}"…` };
    this.setStatus(id, status, error);
  }

  #chance(probability: number): boolean {
    return this.#random() < probability;
  }

  #pick<Value>(values: readonly Value[]): Value {
    // oxlint-disable-next-line typescript/no-non-null-assertion -- the index is below the length
    return values[Math.floor(this.#random() * values.length)]!;
  }

  /** Returns a whole number that is `mean` on average: 2.3 gives 3 in three of ten cases, otherwise 2. */
  #round(mean: number): number {
    return Math.floor(mean + this.#random());
  }
}
