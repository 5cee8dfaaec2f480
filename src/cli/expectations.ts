import type { ProjectConfig } from '../config/config.ts';
import { isUnfinished } from '../domain/status.ts';
import type { LearnedExpectations } from '../monitor/expectations.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { ExpectationsOf } from '../monitor/ports/expectations.ts';
import type { StatusRow, StoreReader } from '../monitor/ports/store.ts';

/** Returns what is expected of the projects whose prompts wait in these rows. @throws {StoreError} */
export type ReadExpectations = (rows: readonly StatusRow[]) => Promise<ExpectationsOf>;

/**
 * Creates the function that reads expectations. It reads the durations of projects with waiting prompts only, and remembers
 * them for some minutes: the rest of a large store costs nothing.
 */
export function createExpectationsReader(
  store: Pick<StoreReader, 'durations'>,
  projects: readonly ProjectConfig[],
  clock: Clock,
): ReadExpectations {
  const configured = new Map(projects.map((project) => [project.id, project]));
  const waiting = new Map<string, ProjectConfig>();
  let expectations: LearnedExpectations | undefined;

  async function create(): Promise<LearnedExpectations> {
    const [{ createExpectations }, { createLongestInterval }] = await Promise.all([
      import('../monitor/expectations.ts'),
      import('../schedule/longest-interval.ts'),
    ]);
    const longestInterval = createLongestInterval(clock);
    return createExpectations({
      store,
      clock,
      projects: () => waiting,
      maxIntervalMs: (id) => {
        const project = waiting.get(id);
        return project === undefined ? 0 : longestInterval(project);
      },
    });
  }

  return async (rows) => {
    for (const { project: id, status } of rows) {
      const project = configured.get(id);
      if (project !== undefined && isUnfinished(status)) waiting.set(id, project);
    }
    if (waiting.size === 0) return () => undefined;
    expectations ??= await create();
    await expectations.refresh();
    return expectations.of;
  };
}
