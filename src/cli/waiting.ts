import { setTimeout as sleep } from 'node:timers/promises';
import { formatDuration } from '../domain/options.ts';
import { POLL_FAILURE_WORDS } from '../monitor/errors.ts';
import { DOWN_POLLS, MIN_DOWN_MS } from '../notify/conditions.ts';
import {
  type ExperimentFields,
  experimentSchema,
  type FailureFields,
  failureSchema,
  type ProjectFields,
  projectSchema,
  type PromptFields,
  promptSchema,
} from '../rows/schema.ts';
import { UsageError } from './command.ts';
import { type DaemonClient, type StreamEvent, whyUnreachable } from './daemon-client.ts';

/** Pause before a daemon that did not answer is asked again. */
const RETRY_MS = 2000;
/** Time after which the state is read again without news. */
const MAX_AGE_MS = 15_000;
/** Time for reading what there is at the end of a wait that was in vain. */
const LAST_READ_MS = 10_000;
const MAX_NAMES = 5;
/** Maximum number of rows of a page. */
const LIMIT = '1000';

export interface WaitOptions {
  readonly project: string;
  readonly experiment?: string;
  /** How long before the start a finish of the experiment counts, ms. */
  readonly since: number;
  readonly timeout: number;
  /** With a report all prompts are read, not only those that are FAILED. */
  readonly junit?: string;
}

export interface PromptResult {
  readonly fields: PromptFields;
  failure?: FailureFields;
}

export interface Result {
  readonly row: ExperimentFields;
  readonly prompts: readonly PromptResult[];
}

/** How a wait ended: `fault` is why the experiments have not finished. */
export interface Outcome {
  readonly fault?: { readonly code: 3 | 4; readonly message: string };
  /** The experiments that were waited for, without prompts if the daemon no longer answers. */
  readonly results: readonly Result[];
}

/** Waits until experiments of a project have finished (docs/specification.md#waiting). */
export class Waiting {
  readonly #client: DaemonClient;
  readonly #options: WaitOptions;
  readonly #tell: (line: string) => void;
  #end: AbortSignal;
  readonly #startedAt = performance.now();
  /** The experiments that are waited for, as they were read last. */
  #awaited: readonly ExperimentFields[] = [];
  #readAt = -Infinity;
  /** The finishes of the first reading, and from when on they count, epoch ms of the daemon. */
  #first: ReadonlyMap<string, string | null> | undefined;
  #countsFrom = 0;
  #firstPoll: number | undefined;
  #told = '';

  constructor(client: DaemonClient, options: WaitOptions, tell: (line: string) => void) {
    this.#client = client;
    this.#options = options;
    this.#tell = tell;
    this.#end = AbortSignal.timeout(options.timeout);
  }

  /** Follows the daemon to the end. `show` takes the events. @throws {UsageError} if the daemon refuses to answer */
  async outcome(show: (events: readonly StreamEvent[]) => Promise<void>): Promise<Outcome> {
    try {
      return await this.#follow(show);
    } catch (error) {
      if (!this.#end.aborted) throw error;
      // What was read last may be old.
      this.#end = AbortSignal.timeout(LAST_READ_MS);
      const [last, silence] = await this.#read().then(
        (outcome) => [outcome, ''] as const,
        () => [undefined, ', and the daemon does not answer'] as const,
      );
      const message = `not finished within ${formatDuration(this.#options.timeout)}${silence}`;
      return last ?? (await this.#giveUp(3, message, this.#end));
    }
  }

  async #follow(show: (events: readonly StreamEvent[]) => Promise<void>): Promise<Outcome> {
    const { project } = this.#options;
    let after: string | undefined;
    for (;;) {
      try {
        for await (const events of this.#client.events({ project, after }, this.#end)) {
          after = events.findLast(({ id }) => id !== undefined)?.id ?? after;
          await show(events);
          // Events only say when to read the state: one that is missed changes nothing.
          const outcome = events.some((event) => this.#isNews(event)) && (await this.#read());
          if (outcome) return outcome;
        }
        this.#say('the daemon has closed the connection: trying again');
      } catch (error) {
        this.#end.throwIfAborted();
        this.#say(`${whyUnreachable(error)}: trying again`);
      }
      await sleep(RETRY_MS, undefined, { signal: this.#end });
    }
  }

  #isNews({ type, data }: StreamEvent): boolean {
    const { experiment = data['experiment'] } = this.#options;
    if (performance.now() - this.#readAt > MAX_AGE_MS) return true;
    if (type === 'experiment') return data['experiment'] === experiment;
    if (type === 'poll') return data['ok'] === false;
    return type === undefined || type === 'reset';
  }

  /** Reads the state; returns undefined while the wait goes on. */
  async #read(): Promise<Outcome | undefined> {
    this.#readAt = performance.now();
    const { project: id } = this.#options;
    const projects = await this.#client.rows('projects', projectSchema, {}, this.#end);
    const project = projects.find((each) => each.project === id);
    if (project === undefined) throw new UsageError(`the daemon does not poll the project ${id}`);
    const awaited = await this.#readAwaited();
    if (awaited.length > 0 && awaited.every(({ state }) => state === 'finished')) {
      const results = await this.#results(this.#end);
      // Meanwhile one may have been reopened, or another one may have begun.
      const now = await this.#readAwaited();
      return JSON.stringify(now) === JSON.stringify(awaited) ? { results } : undefined;
    }
    if (project.pause?.until === null) return await this.#giveUp(4, `${id} is paused`);
    if (!this.#isDown(project)) return undefined;
    const why = project.reason === null ? '' : `: ${POLL_FAILURE_WORDS[project.reason]}`;
    return await this.#giveUp(4, `evalwatch cannot poll ${id}${why}`);
  }

  async #readAwaited(): Promise<readonly ExperimentFields[]> {
    const { project, experiment, since } = this.#options;
    const query = { project, experiment, limit: LIMIT };
    const all = await this.#client.rows('experiments', experimentSchema, query, this.#end);
    if (this.#first === undefined) {
      const backMs = experiment === undefined ? 0 : since;
      this.#countsFrom = this.#client.aheadMs + this.#startedAt - backMs;
      this.#first = new Map(all.map((row) => [row.experiment, row.finished]));
    }
    this.#awaited = all.filter((row) => this.#isAwaited(row));
    this.#say(this.#describe(all));
    return this.#awaited;
  }

  #isAwaited({ experiment, state, first_move, finished }: ExperimentFields): boolean {
    if (state === 'finished') {
      const isNew = finished !== this.#first?.get(experiment);
      return isNew || Date.parse(finished ?? '') > this.#countsFrom;
    }
    // What has ended without a move does not finish.
    return this.#options.experiment !== undefined || state === 'running' || first_move !== null;
  }

  #describe([one]: readonly ExperimentFields[]): string {
    const { project, experiment } = this.#options;
    const open = this.#awaited.filter(({ state }) => state !== 'finished');
    const all = (open.length > 0 ? open : this.#awaited).map((row) => row.experiment).toSorted();
    const names = all.slice(0, MAX_NAMES).join(', ');
    const more = all.length > MAX_NAMES ? ` and ${all.length - MAX_NAMES} more` : '';
    const isUnseen = open.some(({ state, first_move }) => state === 'ended' && first_move === null);
    const hint = isUnseen ? ': it has ended, but evalwatch has seen no prompt of it move' : '';
    if (all.length > 0) return `waiting for ${names}${more} of ${project}${hint}`;
    if (experiment === undefined) return `waiting for the next experiment of ${project}`;
    const why = one ? `its finish at ${one.finished} is before --since` : 'it is not known yet';
    return `waiting for ${experiment} of ${project}: ${why}`;
  }

  #isDown({ up, consecutive_failures, last_poll, last_success }: ProjectFields): boolean {
    const polledAt = Date.parse(last_poll ?? '');
    this.#firstPoll ??= polledAt;
    // The first may be from before a stop of the daemon.
    if (up || polledAt === this.#firstPoll || consecutive_failures < DOWN_POLLS) return false;
    return last_success === null || polledAt - Date.parse(last_success) > MIN_DOWN_MS;
  }

  async #results(signal: AbortSignal): Promise<readonly Result[]> {
    const results: Result[] = [];
    for (const row of this.#awaited) {
      const { project, experiment } = row;
      const query = { project, experiment, limit: LIMIT };
      const asked = this.#options.junit === undefined ? { ...query, status: 'FAILED' } : query;
      const read = await this.#client.rows('prompts', promptSchema, asked, signal);
      const prompts = new Map<string, PromptResult>();
      for (const fields of read) prompts.set(fields.prompt_id, { fields });
      // The newest failure of a prompt comes first.
      for (const failure of await this.#client.rows('failures', failureSchema, query, signal)) {
        const prompt = prompts.get(failure.prompt_id);
        if (prompt?.fields.status === 'FAILED') prompt.failure ??= failure;
      }
      results.push({ row, prompts: [...prompts.values()] });
    }
    return results;
  }

  async #giveUp(
    code: 3 | 4,
    message: string,
    signal = AbortSignal.timeout(LAST_READ_MS),
  ): Promise<Outcome> {
    const results = await this.#results(signal).catch(() =>
      this.#awaited.map((row) => ({ row, prompts: [] })),
    );
    return { fault: { code, message }, results };
  }

  /** Says what was not said last. */
  #say(line: string): void {
    if (line !== this.#told) this.#tell(line);
    this.#told = line;
  }
}
