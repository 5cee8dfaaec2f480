import { isPassing, StoreError } from '../../monitor/errors.ts';
import type { Observer } from '../../monitor/events.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import type { Database, Statement } from './database.ts';
import { digestOf, type LastConfiguration } from './last-configuration.ts';
import { CONFIGURE, NEXT_EPOCH, UNCONFIGURED } from './sql/projects.ts';

/** Maximum number of rounds: a concurrent prune can delete what was just configured, and another worker can take a project. */
const MAX_ROUNDS = 5;
const AGAIN_MS = 500;

export interface ConfigureOptions {
  readonly database: Pick<Database, 'attempt'>;
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>;
  /** Receives `store.committed` and `store.commit_failed`. */
  readonly emit: Observer;
  /** Aborts when the store closes. */
  readonly signal: AbortSignal;
  /** Receives what was configured. */
  readonly last: Pick<LastConfiguration, 'set'>;
}

/** `Store.configureProjects`. The ids are encoded (sql/text.ts). */
export type Configure = (ids: readonly string[], at: number) => Promise<void>;

/**
 * Creates `Store.configureProjects`. Before the first change, a failure rejects at once. After a change or a lost answer,
 * the statement is repeated until the database answers: a project that is marked removed although its configuration was
 * refused would lose its failures. Repeating it changes nothing, and what has changed since it was sent, it leaves alone
 * (docs/design-decisions.md#reload). If the database then refuses the statement, the error says that the change may have been
 * made.
 */
export function createConfigure(options: ConfigureOptions): Configure {
  const { database, clock, emit, signal, last } = options;
  return async (ids, at) => {
    const digest = digestOf(ids);
    let mayBeMade = false;

    async function run<Row>(statement: Statement, values: readonly unknown[]) {
      for (;;) {
        const { rows, error, unknown } = await database.attempt<Row>(statement, values);
        if (error === undefined) return rows;
        emit({ type: 'store.commit_failed', reason: error.reason, error });
        mayBeMade ||= unknown;
        if (!mayBeMade) throw error;
        if (signal.aborted || !isPassing(error)) throw possiblyChanged(error);
        await clock.sleep(AGAIN_MS);
      }
    }

    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const started = clock.monotonic();
      const [next] = await run<{ readonly epoch: number }>(NEXT_EPOCH, []);
      const leftAlone = await run(CONFIGURE, [ids, at, next?.epoch, digest]);
      mayBeMade = true;
      last.set(ids);
      emit({ type: 'store.committed', durationMs: clock.monotonic() - started });
      const missing = await run(UNCONFIGURED, [ids]);
      if (leftAlone.length === 0 && missing.length === 0) return;
    }
  };
}

function possiblyChanged({ reason, message }: StoreError): StoreError {
  return new StoreError(
    reason,
    `${message}; the watched projects may have changed already: repeat this once the database accepts it`,
  );
}
