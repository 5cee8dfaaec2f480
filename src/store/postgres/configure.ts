import { projectsDigestOf } from '../../coordination/projects-digest.ts';
import { isPassing, StoreError } from '../../monitor/errors.ts';
import type { Observer } from '../../monitor/events.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import type { Database, Statement } from './database.ts';
import { CONFIGURE, CONFIRM, NEXT_EPOCH } from './sql/projects.ts';
import { toStored } from './sql/text.ts';

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
   * `Store.configureProjects`. Before the first change, a failure rejects at once. After a change or a lost answer, the
   * statement is repeated until the database answers: a project that is marked removed although its configuration was refused
   * would lose its failures. A repetition that arrives late does not undo a later change
   * (docs/design-decisions.md#reload). If the database then refuses the statement, the error says that the change may have
   * been made. Rejects with the reason `busy` if other changes come first in every round.
   */
  configure(ids: readonly string[], at: number): Promise<void>;
  /** `PostgresStore.restoreProjects`. A failure rejects at once. */
  restore(ids: readonly string[], at: number, newest: number): Promise<boolean>;
}

/** Runs a statement with the values that each attempt asks for. */
type Run = <Row>(statement: Statement, values: () => Values) => Promise<readonly Row[]>;
type Values = readonly unknown[] | Promise<readonly unknown[]>;

interface Numbered {
  /** Null if no change was made. */
  readonly epoch: number | null;
}

/** Creates the changes of one store. Call them one at a time. */
export function createProjectChanges(options: ProjectChangesOptions): ProjectChanges {
  const { database, clock, emit, signal } = options;

  /** Makes the change, if the newest one is `expected` or that is null. Returns whether it did. */
  async function change(
    run: Run,
    { ids, at }: { readonly ids: readonly string[]; readonly at: number },
    expected: number | null,
  ): Promise<boolean> {
    const stored = ids.map((id) => toStored(id));
    const digest = projectsDigestOf(ids);
    /** Number of the change that was made in the round before, or the expected one. */
    let newest = expected;
    let isMade = false;
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const started = clock.monotonic();
      const before = newest;
      const [made] = await run<Numbered>(CONFIGURE, async () => {
        // A new one for each attempt: the last one may have been made, and only its answer lost.
        const [drawn] = await run<Numbered>(NEXT_EPOCH, () => []);
        return [stored, at, drawn?.epoch, before];
      });
      const epoch = made?.epoch ?? null;
      // Another change came first. It decides if this one was made before, or is held to the expected one.
      if (epoch === null && newest !== null) return isMade;
      if (epoch === null) {
        // Several workers that reload at once would otherwise come before each other round after round.
        await clock.sleep(AGAIN_MS);
        continue;
      }
      isMade = true;
      newest = epoch;
      emit({ type: 'store.committed', durationMs: clock.monotonic() - started });
      const [found] = await run<{ readonly differs: boolean }>(CONFIRM, () => [
        stored,
        digest,
        epoch,
      ]);
      if (found?.differs !== true) return true;
    }
    return isMade;
  }

  /** Returns what runs the statements of one change, and repeats each from the first one that changes something on. */
  function persistently(): Run {
    let mayBeMade = false;
    return async <Row>(statement: Statement, values: () => Values) => {
      for (;;) {
        const { rows, error, unknown } = await database.attempt<Row>(statement, await values());
        mayBeMade ||= statement === CONFIGURE && (error === undefined || unknown);
        if (error === undefined) return rows;
        emit({ type: 'store.commit_failed', reason: error.reason, error });
        if (!mayBeMade) throw error;
        if (signal.aborted || !isPassing(error)) throw possiblyChanged(error);
        await clock.sleep(AGAIN_MS);
      }
    };
  }

  async function once<Row>(statement: Statement, values: () => Values) {
    const { rows, error } = await database.attempt<Row>(statement, await values());
    if (error === undefined) return rows;
    emit({ type: 'store.commit_failed', reason: error.reason, error });
    throw error;
  }

  return {
    configure: async (ids, at) => {
      if (await change(persistently(), { ids, at }, null)) return;
      throw new StoreError(
        'busy',
        'other changes of the watched projects came first, five times in a row: try again',
      );
    },
    restore: (ids, at, newest) => change(once, { ids, at }, newest),
  };
}

function possiblyChanged({ reason, message }: StoreError): StoreError {
  return new StoreError(
    reason,
    `${message}; the watched projects may have changed already: repeat this once the database accepts it`,
  );
}
