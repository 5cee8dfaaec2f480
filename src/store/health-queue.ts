import { StoreError } from '../monitor/errors.ts';
import type { Clock, Timer } from '../monitor/ports/clock.ts';

/** Time for which health waits for that of other projects, ms. Stored health is older by at most this and a commit. */
const GATHER_MS = 1000;

/**
 * Gathers the health of polls that changed nothing (docs/specification.md#commits), the newest of each project, and has it
 * written together.
 */
export class HealthQueue<Health> {
  readonly #write: (waiting: ReadonlyMap<string, Health>) => Promise<void>;
  readonly #clock: Pick<Clock, 'timeout'>;
  #waiting = new Map<string, Health>();
  /** What is being written, and the end of that. */
  #writing: { readonly taken: Map<string, Health>; readonly done: Promise<void> } | undefined;
  /** The flush after the write that is under way. */
  #following: Promise<void> | undefined;
  #timer: Timer | undefined;
  #isFailing = false;
  #isClosed = false;

  /** `write` emits its commit or its failure. */
  constructor(
    write: (waiting: ReadonlyMap<string, Health>) => Promise<void>,
    clock: Pick<Clock, 'timeout'>,
  ) {
    this.#write = write;
    this.#clock = clock;
  }

  /**
   * Resolves when the health waits to be written. After a failed write, and while writes take longer than a second, resolves
   * when it is written; if it rejects, this health is dropped, and what waited before waits again.
   * @throws {StoreError}
   */
  async add(project: string, health: Health): Promise<void> {
    const before = this.#waiting.get(project);
    this.#waiting.set(project, health);
    if (!this.#isFailing && this.#following === undefined) {
      this.#schedule();
      return;
    }
    try {
      await this.flush();
    } catch (error) {
      if (this.#waiting.get(project) === health) {
        if (before === undefined) this.#waiting.delete(project);
        else this.#waiting.set(project, before);
      }
      throw error;
    }
  }

  /** Has the health written with that of other projects, however often that fails. */
  keep(project: string, health: Health): void {
    this.#waiting.set(project, health);
    this.#schedule();
  }

  /** Drops the health of this project. Resolves when none of it is being written, so that a commit of newer health can follow. */
  async drop(project: string): Promise<void> {
    this.#waiting.delete(project);
    if (this.#writing?.taken.delete(project) === true) await this.#writing.done.catch(ignore);
  }

  /** Writes all waiting health. @throws {StoreError} and the health goes on waiting */
  async flush(): Promise<void> {
    if (this.#writing === undefined) return await this.#writeAll();
    this.#following ??= this.#writing.done.catch(ignore).then(async () => {
      this.#following = undefined;
      return await this.flush();
    });
    await this.#following;
  }

  /** Writes all waiting health one last time. Ignores a failure of the store. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.flush().catch(ignoreStoreError);
    this.#timer?.cancel();
  }

  async #writeAll(): Promise<void> {
    if (this.#waiting.size === 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    const taken = this.#waiting;
    this.#waiting = new Map();
    const done = this.#write(taken).then(
      () => this.#end(),
      (error: unknown) => {
        this.#end();
        this.#isFailing = true;
        this.#waiting = new Map([...taken, ...this.#waiting]);
        this.#schedule();
        throw error;
      },
    );
    this.#writing = { taken, done };
    await done;
  }

  #end(): void {
    this.#writing = undefined;
    this.#isFailing = false;
  }

  #schedule(): void {
    if (this.#isClosed) return;
    this.#timer ??= this.#clock.timeout(GATHER_MS, () => {
      this.#timer = undefined;
      this.flush().catch(ignoreStoreError);
    });
  }
}

function ignore(): void {
  // The caller that started the write gets the error.
}

function ignoreStoreError(error: unknown): void {
  if (!(error instanceof StoreError)) throw error;
}
