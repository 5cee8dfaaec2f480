import type { Clock } from '../../monitor/ports/clock.ts';
import type { PollCommit, PollHealth, Store, StoreSnapshot } from '../../monitor/ports/store.ts';
import { HealthQueue } from '../health-queue.ts';
import { toHealthColumns } from '../rows.ts';
import { PART_ROWS } from './sql/poll-rows.ts';
import type { WriteQueue } from './write-queue.ts';

/** Commits of polls. The health of polls that changed nothing waits for up to a second and is written together. */
export interface Polls {
  /** Sets the configured projects, after the store has them. */
  configure(ids: readonly string[]): void;
  readonly commit: Store['commitPoll'];
  /** Returns the snapshot with health that is not written yet. */
  withNewestHealth(snapshot: StoreSnapshot): StoreSnapshot;
  /** Writes all waiting health. @throws {StoreError} */
  flush(): Promise<void>;
  /** Writes all waiting health one last time. Ignores a failure of the store. */
  close(): Promise<void>;
}

export function createPolls(queue: WriteQueue, clock: Pick<Clock, 'timeout'>): Polls {
  /** The configured projects, each with the health of its last committed poll; undefined before the first one. */
  let newest = new Map<string, PollHealth | undefined>();
  const health = new HealthQueue(writeHealth, clock);

  async function writeHealth(waiting: ReadonlyMap<string, PollHealth>): Promise<void> {
    const rows = Array.from(waiting, ([project, each]) => ({ project, ...toHealthColumns(each) }));
    while (rows.length > 0) {
      await queue.write({ method: 'writeHealth', args: [rows.splice(0, PART_ROWS)] });
    }
  }

  /** A poll of a project that is not configured is rare, and committed at once even if it changed nothing. */
  async function commit(poll: PollCommit) {
    const { project } = poll;
    if (poll.listings.size === 0 && newest.has(project)) {
      await health.add(project, poll.health);
      return [];
    }
    await health.drop(project);
    return await queue.commit(poll);
  }

  return {
    configure: (ids) => {
      newest = new Map(ids.map((id) => [id, newest.get(id)]));
    },
    commit: async (poll) => {
      const transitions = await commit(poll);
      const isConfigured = newest.has(poll.project);
      if (transitions !== undefined && isConfigured) newest.set(poll.project, poll.health);
      return transitions;
    },
    withNewestHealth: ({ projects, backlog }) => ({
      projects: projects.map((each) => ({
        ...each,
        health: newest.get(each.project) ?? each.health,
      })),
      backlog,
    }),
    flush: () => health.flush(),
    close: () => health.close(),
  };
}
