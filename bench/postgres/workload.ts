import type { KnownRecord } from '../../src/domain/record.ts';
import type { Changes } from '../../src/domain/transition.ts';
import type { PollCommit, PollHealth } from '../../src/monitor/ports/store.ts';
import type { PostgresStore } from '../../src/store/postgres/postgres-store.ts';

const UP: PollHealth = {
  up: true,
  consecutiveFailures: 0,
  reason: undefined,
  lastPollAt: undefined,
  lastSuccessAt: undefined,
};

/** Polls of one worker without a service: their results are synthetic. */
export interface Workload {
  /** Commits the first listing of a project: `prompts` that are RUNNING. Returns the duration, ms. */
  baseline(project: string, prompts: number): Promise<number>;
  /** Commits a poll that finds `prompts` changed. Returns the duration, ms. */
  change(project: string, prompts: number): Promise<number>;
  unchanged(project: string): Promise<void>;
}

export function createWorkload(store: PostgresStore): Workload {
  const projects = new Map<string, { version: number; polls: number }>();

  async function commit(project: string, changes: Changes | undefined): Promise<number> {
    const known = projects.get(project) ?? { version: 0, polls: 0 };
    const ids = changes?.records.map(({ id }) => id);
    // Like the poller, loads only the records that the listing changes.
    const loaded = ids && (await store.loadKnown(project, ['prompt'], new Map([['prompt', ids]])));
    const at = Date.now();
    store.planTick(project, at + 30_000);
    const poll: PollCommit = {
      project,
      at,
      health: { ...UP, lastPollAt: at, lastSuccessAt: at },
      version: known.version,
      token: loaded?.token,
      listings: new Map(changes && [['prompt', changes]]),
    };
    const started = performance.now();
    const committed = await store.commitPoll(poll);
    const took = performance.now() - started;
    if (committed === undefined) throw new Error(`the commit of ${project} was refused`);
    const step = changes === undefined ? 0 : 1;
    projects.set(project, { version: known.version + step, polls: known.polls + 1 });
    return took;
  }

  return {
    baseline: async (project, prompts) => {
      const records = Array.from({ length: prompts }, (_, index) => recordOf(index, 'RUNNING'));
      return await commit(project, { baseline: true, records, transitions: [], gone: [] });
    },
    change: async (project, prompts) => {
      const polls = projects.get(project)?.polls ?? 0;
      const [from, to] =
        polls % 2 === 1 ? (['RUNNING', 'COMPLETED'] as const) : (['COMPLETED', 'RUNNING'] as const);
      const records = Array.from({ length: prompts }, (_, index) => recordOf(index, to));
      const transitions = records.map(({ id, name }) => ({ id, name, from, to, heldMs: 1000 }));
      return await commit(project, { baseline: false, records, transitions, gone: [] });
    },
    unchanged: async (project) => {
      await commit(project, undefined);
    },
  };
}

function recordOf(index: number, status: 'RUNNING' | 'COMPLETED'): KnownRecord {
  return {
    id: `prompt-${String(index).padStart(6, '0')}-3f2a`,
    status,
    statusRaw: undefined,
    name: `Evaluation of answer ${index}`,
    timestamp: new Date().toISOString(),
    since: Date.now(),
    missing: 0,
    gone: false,
  };
}
