import { projectsDigestOf } from '../../coordination/projects-digest.ts';
import { isPassing, StoreError } from '../../monitor/errors.ts';
import type { Observer } from '../../monitor/events.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import type { Database, Statement } from './database.ts';
import { CONFIGURE, NEXT_EPOCH, UNCONFIGURED } from './sql/projects.ts';
import { toStored } from './sql/text.ts';

/** Maximum number of rounds: a concurrent prune can delete what was just configured, and another worker can take a project. */
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
   * would lose its failures. Repeating it changes nothing, and what has changed since it was sent, it leaves alone
   * (docs/design-decisions.md#reload). If the database then refuses the statement, the error says that the change may have
   * been made.
   */
  configure(ids: readonly string[], at: number): Promise<void>;
  /** `PostgresStore.restoreProjects`. A failure rejects at once. */
  restore(ids: readonly string[], at: number, storedDigest: string): Promise<boolean>;
}

type Run = <Row>(statement: Statement, values: readonly unknown[]) => Promise<readonly Row[]>;

interface Configured {
  /** False if another digest was stored than expected: nothing was changed. */
  readonly is_made: boolean;
  /** Whether it left a project alone. */
  readonly leaves_some: boolean;
}

export function createProjectChanges(options: ProjectChangesOptions): ProjectChanges {
  const { database, clock, emit, signal } = options;

  /** Makes the change in rounds, with the function that runs a statement. Returns whether it was made. */
  async function change(
    run: Run,
    { ids, at }: { readonly ids: readonly string[]; readonly at: number },
    storedDigest: string | null,
  ): Promise<boolean> {
    const stored = ids.map((id) => toStored(id));
    const digest = projectsDigestOf(ids);
    let expected = storedDigest;
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const started = clock.monotonic();
      const [next] = await run<{ readonly epoch: number }>(NEXT_EPOCH, []);
      const values = [stored, at, next?.epoch, digest, expected];
      const [configured] = await run<Configured>(CONFIGURE, values);
      if (configured?.is_made !== true) return round > 0;
      emit({ type: 'store.committed', durationMs: clock.monotonic() - started });
      const differing = await run(UNCONFIGURED, [stored]);
      if (!configured.leaves_some && differing.length === 0) return true;
      if (expected !== null) expected = configured.leaves_some ? '' : digest;
    }
    return true;
  }

  /** Runs the statements of one configuration. From the first change on, repeats each until the database answers. */
  function persistently(): Run {
    let mayBeMade = false;
    return async <Row>(statement: Statement, values: readonly unknown[]) => {
      for (;;) {
        const { rows, error, unknown } = await database.attempt<Row>(statement, values);
        if (error === undefined) {
          mayBeMade ||= statement === CONFIGURE;
          return rows;
        }
        emit({ type: 'store.commit_failed', reason: error.reason, error });
        mayBeMade ||= unknown;
        if (!mayBeMade) throw error;
        if (signal.aborted || !isPassing(error)) throw possiblyChanged(error);
        await clock.sleep(AGAIN_MS);
      }
    };
  }

  async function once<Row>(statement: Statement, values: readonly unknown[]) {
    const { rows, error } = await database.attempt<Row>(statement, values);
    if (error === undefined) return rows;
    emit({ type: 'store.commit_failed', reason: error.reason, error });
    throw error;
  }

  return {
    configure: async (ids, at) => {
      await change(persistently(), { ids, at }, null);
    },
    restore: (ids, at, storedDigest) => change(once, { ids, at }, storedDigest),
  };
}

function possiblyChanged({ reason, message }: StoreError): StoreError {
  return new StoreError(
    reason,
    `${message}; the watched projects may have changed already: repeat this once the database accepts it`,
  );
}
