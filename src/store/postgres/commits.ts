import type { Kind } from '../../domain/status.ts';
import type { Summary } from '../../domain/summary.ts';
import type { StoreError } from '../../monitor/errors.ts';
import type { Observer } from '../../monitor/events.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import type { CommittedTransition, PollCommit } from '../../monitor/ports/store.ts';
import { unknownProject } from '../rows.ts';
import type { Database } from './database.ts';
import type { Epochs } from './ownership/epochs.ts';
import {
  type CommitContext,
  commitOf,
  type CommitRow,
  REFUSAL,
  RESOLVE,
  type ResolvedRow,
  withIds,
} from './sql/poll-commit.ts';
import type { Summaries } from './sql/summaries.ts';

const RESOLVE_AGAIN_MS = 500;

export interface Commits {
  /** `Store.commitPoll` for a poll with listings, under this ownership, whose epoch it may change. */
  commit(
    poll: PollCommit,
    context: CommitContext,
  ): Promise<readonly CommittedTransition[] | undefined>;
  /** Emits why nothing of a project's poll was stored. @throws {StoreError} if there is no such project */
  refuse(project: string, epoch: number | undefined): Promise<undefined>;
}

/** Emits that a commit under this ownership was refused. */
export type EmitRefused = (
  project: string,
  epoch: number | undefined,
  reason: 'epoch' | 'version',
) => void;

export interface CommitsOptions {
  readonly database: Pick<Database, 'attempt' | 'query'>;
  /** Name of this worker. */
  readonly worker: string;
  readonly clock: Clock;
  readonly emit: Observer;
  readonly summaries: Pick<Summaries, 'after'>;
  readonly emitRefused: EmitRefused;
  readonly epochs: Pick<Epochs, 'add'>;
  /** Aborts when a shutdown has waited long enough. */
  readonly signal: AbortSignal;
}

/**
 * Commits each poll in one statement. When the answer is lost with the connection, the rows are read until they show whether
 * the poll was committed, so that its transitions are emitted once, even if half a minute later.
 */
export function createCommits(options: CommitsOptions): Commits {
  const { database, worker, clock, emit, summaries, emitRefused, epochs, signal } = options;

  function emitFailed(error: StoreError): void {
    emit({ type: 'store.commit_failed', reason: error.reason, error });
  }

  function succeeded(poll: PollCommit, row: CommitRow, started: number) {
    emit({ type: 'store.committed', durationMs: clock.monotonic() - started });
    return withIds(poll, row.transition_ids ?? []);
  }

  async function commitUnder(
    context: CommitContext,
    poll: PollCommit,
    after: ReadonlyMap<Kind, Summary>,
  ): Promise<readonly CommittedTransition[] | undefined> {
    const started = clock.monotonic();
    const { statement, values } = commitOf(poll, after, context, worker);
    const { rows, error, unknown } = await database.attempt<CommitRow>(statement, values);
    if (error !== undefined) {
      emitFailed(error);
      if (unknown) return await resolve(context, poll, after, started);
      throw error;
    }
    const [row] = rows;
    return row === undefined
      ? await refuse(poll.project, context.epoch)
      : succeeded(poll, row, started);
  }

  async function resolve(
    context: CommitContext,
    poll: PollCommit,
    after: ReadonlyMap<Kind, Summary>,
    started: number,
  ): Promise<readonly CommittedTransition[] | undefined> {
    const { project } = poll;
    const row = await findOut(poll, context.epoch);
    if (row.is_next === true || row.transition_ids !== null) return succeeded(poll, row, started);
    if (row.renewed === null) return await refuse(project, context.epoch);
    epochs.add(row.renewed);
    context.epoch = row.renewed;
    return await commitUnder(context, poll, after);
  }

  /** Finds out whether the commit was made. Repeats until the database answers. @throws {StoreError} after the abort */
  async function findOut({ project, token, at }: PollCommit, epoch: number): Promise<ResolvedRow> {
    const parameters = [project, epoch, token, worker, at];
    for (;;) {
      const { rows, error } = await database.attempt<ResolvedRow>(RESOLVE, parameters);
      if (error === undefined) {
        const [row] = rows;
        if (row === undefined) throw unknownProject(project);
        if (row.renewed === null && row.was_same === true) continue;
        return row;
      }
      emitFailed(error);
      if (signal.aborted) throw error;
      await clock.sleep(RESOLVE_AGAIN_MS);
    }
  }

  async function refuse(project: string, epoch: number | undefined): Promise<undefined> {
    const { rows, error } = await database.attempt<{ readonly is_owned: boolean | null }>(REFUSAL, [
      project,
      epoch ?? null,
      worker,
    ]);
    const [row] = rows ?? [];
    const failure = error ?? (row === undefined ? unknownProject(project) : undefined);
    if (failure !== undefined) {
      emitFailed(failure);
      throw failure;
    }
    emitRefused(project, epoch, row?.is_owned === true ? 'version' : 'epoch');
    return undefined;
  }

  return {
    commit: async (poll, context) => await commitUnder(context, poll, await summaries.after(poll)),
    refuse,
  };
}
