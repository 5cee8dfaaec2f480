import { setTimeout } from 'node:timers/promises';
import { StoreError, type StoreFailureReason } from '../../monitor/errors.ts';
import type { Observer } from '../../monitor/events.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import type { Database, Statement } from './database.ts';
import { CONFIGURE, UNCONFIGURED } from './sql/projects.ts';

/** Rounds against prunes that delete what was just configured. */
const ROUNDS = 5;
const AGAIN_MS = 500;
/** Reasons that pass by themselves. For any other reason the database has answered, and refused. */
const PASSING: ReadonlySet<StoreFailureReason> = new Set(['io', 'busy']);

export interface ConfigureOptions {
  readonly database: Pick<Database, 'attempt'>;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Receives `store.committed` and `store.commit_failed`. */
  readonly emit: Observer;
  /** Aborts when the store closes. */
  readonly signal: AbortSignal;
}

/** `Store.configureProjects`, of ids as they are stored. */
export type Configure = (ids: readonly string[], at: number) => Promise<void>;

/**
 * Rejects only while nothing can have been changed: a project that is marked removed although its configuration was
 * refused would lose its failures. Once a change was made, or its answer was lost, it is repeated until the database
 * answers: made twice it is the same. If the database refuses it then, the error says that it may have been made.
 */
export function createConfigure({ database, clock, emit, signal }: ConfigureOptions): Configure {
  return async (ids, at) => {
    let mayBeMade = false;

    async function run(statement: Statement, values: readonly unknown[]) {
      for (;;) {
        const { rows, error, unknown } = await database.attempt(statement, values);
        if (error === undefined) return rows;
        emit({ type: 'store.commit_failed', reason: error.reason, error });
        mayBeMade ||= unknown;
        if (!mayBeMade) throw error;
        if (signal.aborted || !PASSING.has(error.reason)) throw halfDone(error);
        await setTimeout(AGAIN_MS);
      }
    }

    for (let round = 0; round < ROUNDS; round += 1) {
      const started = clock.monotonic();
      await run(CONFIGURE, [ids, at]);
      mayBeMade = true;
      emit({ type: 'store.committed', durationMs: clock.monotonic() - started });
      if ((await run(UNCONFIGURED, [ids])).length === 0) return;
    }
  };
}

function halfDone({ reason, message }: StoreError): StoreError {
  return new StoreError(
    reason,
    `${message}; which projects are watched may have been changed before, so repeat it once the database allows it`,
  );
}
