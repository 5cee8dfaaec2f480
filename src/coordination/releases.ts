import type { Clock } from '../monitor/ports/clock.ts';
import type { Coordinator, Ownership } from './ports.ts';
import { withTimeout } from './timeout.ts';

/** Time to collect projects whose polls have ended, so that one request releases them together, ms. */
const GATHER_MS = 200;

/** Maximum number of projects that one statement releases: more can take longer than the database may for an answer. */
export const MAX_RELEASE = 1000;

/** Gives projects back to the database, each once its last poll has ended. */
export interface Releases {
  /** Projects that are still owned but no longer polled. */
  readonly leaving: Set<string>;
  /** Starts to give these projects back. */
  start(projects: readonly string[]): void;
  /** Resolves when every release that has started has succeeded or failed. */
  settled(): Promise<void>;
}

export interface ReleasesOptions {
  readonly worker: string;
  readonly coordinator: Pick<Coordinator, 'release'>;
  readonly flush: Ownership['flush'];
  /** Number of the lease; a lost lease ends every ownership, and no release of its term counts. */
  readonly term: () => number;
  readonly clock: Pick<Clock, 'monotonic' | 'timeout'>;
  /** Maximum wait for an answer of the database, ms. */
  readonly timeoutMs: number;
  /** Returns a promise that settles when no poll of the project runs any more; undefined if none runs. */
  readonly runningPoll: (project: string) => Promise<unknown> | undefined;
  readonly onReleased: (projects: readonly string[]) => void;
  /** Receives the projects that the database did not take back. The worker still owns them. */
  readonly onFailed: (projects: readonly string[], error: unknown) => void;
}

export function createReleases(options: ReleasesOptions): Releases {
  const { worker, coordinator, flush, term, clock, timeoutMs, runningPoll, onReleased, onFailed } =
    options;
  const leaving = new Set<string>();
  const unsettled = new Set<Promise<void>>();

  async function releaseEach(projects: readonly string[]): Promise<void> {
    const { idle = [], busy = [] } = Object.groupBy(projects, (project) =>
      runningPoll(project) === undefined ? 'idle' : 'busy',
    );
    const ended = new Set<string>();
    const polls = busy.map(async (project) => {
      await runningPoll(project);
      ended.add(project);
    });
    await release(idle);
    let released = 0;
    while (released < busy.length) {
      const gathered = Promise.withResolvers<void>();
      const timer = clock.timeout(GATHER_MS, gathered.resolve);
      await Promise.race([Promise.all(polls), gathered.promise]);
      timer.cancel();
      const next = [...ended];
      ended.clear();
      released += next.length;
      await release(next);
    }
  }

  async function release(projects: readonly string[]): Promise<void> {
    if (!projects.some((project) => leaving.has(project))) return;
    const termBefore = term();
    await withTimeout(flush(), timeoutMs, clock);
    for (let start = 0; start < projects.length; start += MAX_RELEASE) {
      const part = projects.slice(start, start + MAX_RELEASE);
      const released = part.filter((project) => leaving.has(project));
      if (released.length === 0) continue;
      await withTimeout(coordinator.release(worker, released), timeoutMs, clock);
      if (termBefore !== term()) return;
      // A beat may have dropped some of them meanwhile.
      const left = released.filter((project) => leaving.delete(project));
      if (left.length > 0) onReleased(left);
    }
  }

  return {
    leaving,
    start: (projects) => {
      for (const project of projects) leaving.add(project);
      const termBefore = term();
      const work = releaseEach(projects).catch((error: unknown) => {
        const kept =
          termBefore === term() ? projects.filter((project) => leaving.delete(project)) : [];
        onFailed(kept, error);
      });
      unsettled.add(work);
      void work.finally(() => unsettled.delete(work));
    },
    settled: async () => {
      await Promise.all(unsettled);
    },
  };
}
