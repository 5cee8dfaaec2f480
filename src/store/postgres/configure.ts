import { projectsDigestOf } from '../../coordination/projects-digest.ts';
import { isPassing, StoreError } from '../../monitor/errors.ts';
import type { Observer } from '../../monitor/events.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import type { Attempt, Database } from './database.ts';
import { CONFIGURE, CONFIRM, NEXT_EPOCH } from './sql/projects.ts';

/** Maximum number of rounds: a concurrent prune or another change can disturb one. */
const MAX_ROUNDS = 5;
const AGAIN_MS = 500;

export interface ProjectChangesOptions {
  readonly database: Pick<Database, 'attempt'>;
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>;
  /** Receives `store.committed` and `store.commit_failed`. */
  readonly emit: Observer;
  /** Aborts when the store closes. */
  readonly signal: AbortSignal;
}

/** Changes of the configured projects. */
export interface ProjectChanges {
  /**
   * `Store.configureProjects`. A failure rejects at once as long as nothing has changed. Once the change was made, or its
   * answer was lost, its statements are repeated until the database answers: a project that is marked removed although its
   * configuration was refused would lose its failures. A repetition that arrives late does not undo a later change
   * (docs/design-decisions.md#reload). If the database then refuses a statement, the error says that the change may have
   * been made. Rejects with the reason `busy` if other changes come first in every round.
   */
  configure(ids: readonly string[], at: number): Promise<void>;
  /** `PostgresStore.restoreProjects`. A failure rejects at once. */
  restore(ids: readonly string[], at: number, newest: number): Promise<boolean>;
}

interface Change {
  readonly ids: readonly string[];
  readonly at: number;
  /** Number that the newest change must have; null for any. */
  readonly expected: number | null;
  /** Whether statements are repeated once the change may have been made. */
  readonly isPersistent: boolean;
}

interface Numbered {
  /** Null if no change was made. */
  readonly epoch: number | null;
}

/** Creates the changes of one store. Call them one at a time. */
export function createProjectChanges(options: ProjectChangesOptions): ProjectChanges {
  const { database, clock, emit, signal } = options;

  /**
   * Makes a change. Returns whether it did: not if the newest one has another number than expected.
   * @throws {StoreError} `busy` if others come first in every round
   */
  async function change({ ids, at, expected, isPersistent }: Change): Promise<boolean> {
    const digest = projectsDigestOf(ids);
    /** Number of the change that was made in the round before, or the expected one. */
    let newest = expected;
    const isMade = () => newest !== expected;
    /** Whether it was made, or the answer to it was lost. */
    let mayBeMade = false;

    async function run<Row>(attempt: () => Promise<Attempt<Row>>): Promise<readonly Row[]> {
      for (;;) {
        const { rows, error } = await attempt();
        if (error === undefined) return rows;
        emit({ type: 'store.commit_failed', reason: error.reason, error });
        if (!isPersistent || !mayBeMade) throw error;
        if (signal.aborted || !isPassing(error)) throw possiblyChanged(error);
        await clock.sleep(AGAIN_MS);
      }
    }

    /** Makes one attempt under a new number: the last one may have been made, and only its answer lost. */
    async function attemptChange(): Promise<Attempt<Numbered>> {
      const [drawn] = await run(() => database.attempt<Numbered>(NEXT_EPOCH, []));
      const values = [ids, at, drawn?.epoch, newest];
      const attempt = await database.attempt<Numbered>(CONFIGURE, values);
      mayBeMade ||= attempt.unknown === true || numberOf(attempt.rows) !== null;
      return attempt;
    }

    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const started = clock.monotonic();
      const epoch = numberOf(await run(attemptChange));
      // Another change came first. It decides if this one was made before, or is held to the expected one. It can also be an
      // attempt of this one whose answer was lost: then the digest is missing until a beat finds that.
      if (epoch === null && newest !== null) return isMade();
      if (epoch === null) {
        // Several workers that reload at once would otherwise come before each other round after round.
        await clock.sleep(AGAIN_MS);
        continue;
      }
      newest = epoch;
      emit({ type: 'store.committed', durationMs: clock.monotonic() - started });
      const confirmation = [ids, digest, epoch];
      const [found] = await run(() =>
        database.attempt<{ readonly differs: boolean }>(CONFIRM, confirmation),
      );
      if (found?.differs !== true) return true;
    }
    if (isMade()) return true;
    const busy = new StoreError(
      'busy',
      'other changes of the watched projects came first, five times in a row: try again',
    );
    throw mayBeMade ? possiblyChanged(busy) : busy;
  }

  return {
    configure: async (ids, at) => {
      await change({ ids, at, expected: null, isPersistent: true });
    },
    restore: (ids, at, newest) => change({ ids, at, expected: newest, isPersistent: false }),
  };
}

/** Returns the number of the change that was made; null if none was. */
function numberOf(rows: readonly Numbered[] = []): number | null {
  return rows[0]?.epoch ?? null;
}

function possiblyChanged({ reason, message }: StoreError): StoreError {
  return new StoreError(
    reason,
    `${message}; the watched projects may have changed already: repeat this once the database accepts it`,
  );
}
