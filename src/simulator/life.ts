import {
  type Between,
  CAUSES,
  DATASET_NAMES,
  EXPERIMENTS,
  METRICS,
  nth,
  PROMPT_NAMES,
  SHARED_CAUSES,
} from './texts.ts';
import type { ErrorInfo, Prompt, World } from './world.ts';

export const DEFAULT_PROMPTS = 12;

/** What comes next for a prompt or a dataset, and at which step. */
interface Plan {
  readonly at: number;
  readonly status: 'PENDING' | 'RUNNING' | 'COMPLETED' | 'FAILED';
  readonly errorInfo?: ErrorInfo;
}

interface Project {
  readonly id: string;
  /** Place among the projects: each has a metric of its own. */
  readonly index: number;
  /** Prompts that wait until one of them may run, the first one first. */
  readonly waiting: string[];
  /** What comes next for prompts that run, or will be run again. */
  readonly plans: Map<string, Plan>;
  /** What comes next for datasets. They are imported again from time to time. */
  readonly imports: Map<string, Plan>;
  /** Why prompts will fail as soon as they run. */
  readonly doomed: Map<string, ErrorInfo>;
  /** Step at which the next prompts arrive. */
  arrivesAt: number;
}

const DATASETS = 3;
/** Statuses of the first prompts, the newest first, and of the older ones. */
const NEWEST = ['PENDING', 'RUNNING', 'COMPLETED', 'FAILED', 'RUNNING'] as const;
const OLDER = ['COMPLETED', 'COMPLETED', 'COMPLETED', 'FAILED', 'COMPLETED', 'COMPLETED'] as const;
/** How the older one of those that run ends, in one project after the other. One that stays RUNNING is stuck. */
const OLDEST_ENDS = ['FAILED', 'RUNNING', 'COMPLETED'] as const;
/** Age of the n-th of them, ms. */
const AGE_MS = 23 * 60_000;

/** Ranges of steps. */
const STEPS = {
  run: [25, 60],
  doomedRun: [4, 9],
  untilRerun: [30, 150],
  /** Until someone starts a prompt again that never ends. */
  untilRestart: [900, 1800],
  untilArrival: [50, 130],
  untilImport: [60, 400],
  import: [8, 20],
} as const;
/** Number of prompts that arrive together, for each twelve of the first ones. */
const ARRIVING = [3, 5] as const;
/** How many of the first prompts run at the same time, as a share. */
const RUNNING_SHARE = 0.25;
/** A project grows to this many times its first prompts; then the oldest that have ended are removed. */
const GROWTH = 1.5;
/** Steps between two times at which prompts that wait are started. */
const START_EVERY = 3;
/** Probabilities. */
const CHANCE = {
  /** That prompts arrive which fail together, and that one of them is spared. */
  trouble: 0.25,
  spared: 0.25,
  fail: 0.1,
  stick: 0.02,
  rerunFailed: 0.4,
  rerunCompleted: 0.03,
  importFails: 0.15,
};

/**
 * Lets a world live: prompts arrive together, wait, run one after the other, and complete or fail. Few are run again, and very
 * few never end. The same seed gives the same life, step by step.
 */
export class Life {
  readonly #world: World;
  readonly #random: () => number;
  readonly #size: number;
  readonly #projects: readonly Project[];
  readonly #between: Between = (from, to) => from + Math.floor(this.#random() * (to - from + 1));
  #step = 0;
  #created = 0;

  /** @param size number of prompts in each project at the beginning */
  constructor(world: World, seed = 1, size = DEFAULT_PROMPTS) {
    this.#world = world;
    this.#random = randomNumbers(seed);
    this.#size = size;
    this.#projects = world.projects.map((id, index) => this.#begin(id, index));
  }

  step(): void {
    this.#step += 1;
    for (const project of this.#projects) {
      if (this.#step % START_EVERY === 0) this.#startWaiting(project);
      for (const [id, plan] of project.plans) {
        if (plan.at <= this.#step) this.#carryOut(project, id, plan);
      }
      for (const [id, plan] of project.imports) {
        if (plan.at <= this.#step) this.#carryOutImport(project, id, plan);
      }
      if (project.arrivesAt <= this.#step) this.#arrive(project);
    }
  }

  /** Fills a project with what happened before: most prompts have completed, some have failed, few run or wait. */
  #begin(id: string, index: number): Project {
    const project: Project = {
      id,
      index,
      waiting: [],
      plans: new Map(),
      imports: new Map(),
      doomed: new Map(),
      arrivesAt: 10 + 30 * index,
    };
    for (let n = index * DATASETS; n < (index + 1) * DATASETS; n += 1) {
      // The last one has no status, and never gets one.
      const hasStatus = n % DATASETS < DATASETS - 1;
      const dataset = `dataset-${String(n + 1).padStart(4, '0')}`;
      this.#world.putDataset(id, {
        id: dataset,
        name: nth(DATASET_NAMES, n),
        size: 250 + n * 17,
        manifest: { format: 'jsonl', columns: ['input', 'expected'], version: n + 1 },
        status: hasStatus ? 'COMPLETED' : undefined,
      });
      const plan = { at: this.#later(STEPS.untilImport), status: 'RUNNING' } as const;
      if (hasStatus) project.imports.set(dataset, plan);
    }
    for (let age = this.#size - 1; age >= 0; age -= 1) {
      const status = NEWEST[age] ?? nth(OLDER, age + index);
      const prompt = this.#add(project, nth(EXPERIMENTS, age >> 2), {
        status,
        timestamp: new Date(this.#world.now() - age * AGE_MS).toISOString(),
        error_info: status === 'FAILED' ? this.#error() : null,
      });
      if (status === 'PENDING') project.waiting.push(prompt);
      else if (status === 'RUNNING') {
        const end = age < 2 ? 'COMPLETED' : nth(OLDEST_ENDS, index);
        if (end !== status) project.plans.set(prompt, this.#end(end, age * (index + 3)));
      }
    }
    return project;
  }

  /** Adds a prompt with texts of its own. */
  #add({ id, index }: Project, experiment: string, fields: Partial<Prompt>): string {
    const n = this.#created;
    this.#created += 1;
    return this.#world.addPrompt(id, {
      name: `${nth(PROMPT_NAMES, n)} #${n + 1}`,
      dataset: [...(this.#world.datasets(id)?.keys() ?? [])][(n >> 2) % DATASETS] ?? '',
      experiment,
      metric: nth(METRICS, index),
      ...fields,
    });
  }

  /** Adds the prompts of a new experiment. Sometimes something is wrong with nearly all of them. */
  #arrive(project: Project): void {
    const experiment = `${this.#pick(EXPERIMENTS)}-${this.#created}`;
    // A project always has the same trouble.
    const cause = nth(SHARED_CAUSES, project.index);
    const error = this.#chance(CHANCE.trouble) ? cause(this.#between) : undefined;
    const count = Math.ceil((this.#between(...ARRIVING) * this.#size) / DEFAULT_PROMPTS);
    for (let n = 0; n < count; n += 1) {
      const prompt = this.#add(project, experiment, {});
      project.waiting.push(prompt);
      if (error !== undefined && !this.#chance(CHANCE.spared)) project.doomed.set(prompt, error);
    }
    project.arrivesAt = this.#later(STEPS.untilArrival);
    this.#removeOldest(project);
  }

  #removeOldest({ id, plans }: Project): void {
    const prompts = [...(this.#world.prompts(id)?.values() ?? [])];
    const excess = Math.max(0, prompts.length - Math.ceil(this.#size * GROWTH));
    const ended = prompts.filter(
      (prompt) => ['COMPLETED', 'FAILED'].includes(prompt.status) && !plans.has(prompt.id),
    );
    for (const prompt of ended.slice(0, excess)) this.#world.removePrompt(prompt.id);
  }

  /** Starts prompts that wait, unless enough run. A stuck one takes no place. */
  #startWaiting(project: Project): void {
    const { waiting, plans } = project;
    const running = [...plans.values()].filter(({ status }) => status !== 'PENDING').length;
    const free = Math.max(0, Math.ceil(this.#size * RUNNING_SHARE) - running);
    // One at a time in a small project, so that the others are seen to wait.
    for (const id of waiting.splice(0, Math.ceil(free / 4))) {
      this.#world.setStatus(id, 'RUNNING');
      this.#planEnd(project, id);
    }
  }

  /** Decides how and when a run ends. */
  #planEnd(project: Project, id: string): void {
    const { plans, doomed } = project;
    const errorInfo = doomed.get(id);
    if (errorInfo !== undefined) {
      plans.set(id, { at: this.#later(STEPS.doomedRun), status: 'FAILED', errorInfo });
      // The next run is another one.
      doomed.delete(id);
    } else if (this.#chance(CHANCE.stick)) {
      plans.set(id, { at: this.#later(STEPS.untilRestart), status: 'PENDING' });
    } else {
      const status = this.#chance(CHANCE.fail) ? 'FAILED' : 'COMPLETED';
      plans.set(id, this.#end(status, this.#later(STEPS.run)));
    }
  }

  #end(status: 'COMPLETED' | 'FAILED', at: number): Plan {
    return { at, status, ...(status === 'FAILED' && { errorInfo: this.#error() }) };
  }

  #carryOut({ plans, waiting }: Project, id: string, { status, errorInfo }: Plan): void {
    plans.delete(id);
    this.#world.setStatus(id, status, errorInfo);
    if (status === 'PENDING') waiting.push(id);
    else if (this.#chance(status === 'FAILED' ? CHANCE.rerunFailed : CHANCE.rerunCompleted)) {
      plans.set(id, { at: this.#later(STEPS.untilRerun), status: 'PENDING' });
    }
  }

  /** Lets a dataset be imported again, or this import end. */
  #carryOutImport({ id: project, imports }: Project, id: string, { status }: Plan): void {
    this.#world.setDatasetStatus(project, id, status);
    if (status === 'RUNNING') {
      const end = this.#chance(CHANCE.importFails) ? 'FAILED' : 'COMPLETED';
      imports.set(id, { at: this.#later(STEPS.import), status: end });
    } else imports.set(id, { at: this.#later(STEPS.untilImport), status: 'RUNNING' });
  }

  /** Returns a step within this range from now. */
  #later([from, to]: readonly [number, number]): number {
    return this.#step + this.#between(from, to);
  }

  #chance(probability: number): boolean {
    return this.#random() < probability;
  }

  #pick<T>(list: readonly [T, ...T[]]): T {
    return nth(list, this.#between(0, list.length - 1));
  }

  #error(): ErrorInfo {
    return this.#pick(CAUSES)(this.#between);
  }
}

/** Generates numbers from 0 up to 1, the same ones for the same seed. */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
