import type { Ownership } from '../../../coordination/ports.ts';
import type { Observer } from '../../../monitor/events.ts';
import type { Clock } from '../../../monitor/ports/clock.ts';
import type {
  CommittedTransition,
  KnownProject,
  PollCommit,
  Store,
} from '../../../monitor/ports/store.ts';
import { HealthQueue } from '../../health-queue.ts';
import { createCommits, type EmitRefused } from '../commits.ts';
import type { Database, Statement } from '../database.ts';
import type { CommitContext } from '../sql/poll-commit.ts';
import { FLUSH, flushInput, OUTDATED, type WaitingHealth } from '../sql/projects.ts';
import { createSummaries } from '../sql/summaries.ts';
import type { Epochs } from './epochs.ts';

/** Reads and commits of the projects that this worker owns. */
export interface OwnedProjects extends Ownership, Pick<Store, 'loadKnown' | 'commitPoll'> {
  /** Writes waiting health one last time. Ignores a failure of the database. */
  close(): Promise<void>;
}

type Run = <Row>(statement: Statement, values: readonly unknown[]) => Promise<readonly Row[]>;

export interface OwnedProjectsOptions {
  readonly database: Pick<Database, 'attempt' | 'query'>;
  /** Both emit `store.commit_failed` for a failure; `write` also emits `store.committed`. */
  readonly read: Run;
  readonly write: Run;
  /** Name of this worker. */
  readonly worker: string;
  readonly clock: Clock;
  readonly emit: Observer;
  readonly epochs: Pick<Epochs, 'add'>;
  /** Aborts when a shutdown has waited long enough. */
  readonly signal: AbortSignal;
}

/** Creates commits that the database refuses once the ownership, or the version of the project, has changed. */
export function createOwnedProjects(options: OwnedProjectsOptions): OwnedProjects {
  const { database, read, write, worker, clock, emit, epochs, signal } = options;
  const owned = new Map<string, CommitContext>();

  const emitRefused: EmitRefused = (project, epoch, reason) => {
    const isFromEarlierOwnership = (owned.get(project)?.epoch ?? epoch) !== epoch;
    emit({ type: 'store.commit_refused', project, reason, isFromEarlierOwnership });
  };

  const summaries = createSummaries(read);
  const commits = createCommits({
    database,
    worker,
    summaries,
    clock,
    emit,
    emitRefused,
    epochs,
    signal,
  });
  const health = new HealthQueue(writeHealth, clock);

  async function writeHealth(waiting: ReadonlyMap<string, WaitingHealth>): Promise<void> {
    const written = await write<{ readonly id: string }>(FLUSH, [flushInput(waiting), worker]);
    const stored = new Set(written.map(({ id }) => id));
    const refused = new Map([...waiting].filter(([project]) => !stored.has(project)));
    if (refused.size === 0) return;
    const stillOwned = await read<{ readonly id: string }>(OUTDATED, [flushInput(refused), worker]);
    const outdated = new Set(stillOwned.map(({ id }) => id));
    for (const [project, { epoch }] of refused) {
      const reason = outdated.has(project) ? 'version' : 'epoch';
      const context = owned.get(project);
      if (reason === 'version' && context?.epoch === epoch) context.version = 'outdated';
      emitRefused(project, epoch, reason);
    }
  }

  /** Loads known records. After an unexpected version the next commit is refused, so that the poller reads whole listings. */
  async function loadKnown(...asked: Parameters<Store['loadKnown']>): Promise<KnownProject> {
    const context = owned.get(asked[0]);
    const known = await summaries.load(...asked);
    if (context !== undefined) {
      const version = Number(known.token);
      context.version = (context.version ?? version) === version ? version : 'outdated';
    }
    return known;
  }

  async function commitListings(
    poll: PollCommit,
    context: CommitContext,
  ): Promise<readonly CommittedTransition[] | undefined> {
    await health.drop(poll.project);
    const transitions = await commits.commit(poll, context);
    context.version = transitions && Number(poll.token) + 1;
    return transitions;
  }

  return {
    own: (project, epoch) => {
      owned.set(project, { epoch, nextTickAt: undefined, version: undefined });
    },
    epoch: (project) => owned.get(project)?.epoch,
    disown: (project) => {
      owned.delete(project);
      void health.drop(project);
    },
    planTick: (project, at) => {
      const context = owned.get(project);
      if (context !== undefined) context.nextTickAt = at;
    },
    flush: () => health.flush(),
    loadKnown,
    commitPoll: async (poll) => {
      const { project } = poll;
      // Read before the first await: a project that is taken over meanwhile has another context.
      const context = owned.get(project);
      if (context === undefined) return await commits.refuse(project, undefined);
      const { epoch, nextTickAt, version } = context;
      if (version === 'outdated') {
        context.version = undefined;
        emitRefused(project, epoch, 'version');
        return undefined;
      }
      if (poll.listings.size > 0) return await commitListings(poll, context);
      await health.add(project, { epoch, version, nextTickAt, health: poll.health });
      return [];
    },
    close: () => health.close(),
  };
}
