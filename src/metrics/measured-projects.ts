import type { PollHealth, StoreSnapshot } from '../monitor/ports/store.ts';
import type { WatchedProject } from '../monitor/ports/watched-project.ts';
import { ProjectSeries } from './project-series.ts';

/** One of several workers. It exports the series of the projects that it owns. */
export interface MeasuredWorker {
  /** Whether it owns the project and its lease holds. */
  owns(project: string): boolean;
  /** Epoch ms; undefined before the first lease. */
  leaseExpiresAt(): number | undefined;
}

/** Projects that a worker takes, with their health as of then, and projects that it no longer owns. */
export interface ProjectsChange {
  readonly taken: readonly { readonly project: string; readonly health: PollHealth }[];
  readonly dropped: readonly string[];
}

/** The projects that have series: all configured ones, or those of them that this worker owns. */
export interface MeasuredProjects {
  readonly series: ReadonlyMap<string, ProjectSeries>;
  /** Number of configured projects. */
  configured(): number;
  /** Sets the configured projects. Those that have series keep their counts. */
  set(projects: readonly WatchedProject[]): void;
  change(change: ProjectsChange): void;
  /**
   * Returns the series for a scrape. With several workers, the store, if it could be read, must also say that this one owns
   * the project: the two can differ for a while.
   */
  shown(snapshot: StoreSnapshot | undefined): readonly ProjectSeries[];
}

/** `worker` is absent if the store allows only one process. */
export function createMeasuredProjects(worker: MeasuredWorker | undefined): MeasuredProjects {
  let configured: ReadonlyMap<string, WatchedProject> = new Map();
  const series = new Map<string, ProjectSeries>();
  const isOwned = (project: string) => worker === undefined || worker.owns(project);

  return {
    series,
    configured: () => configured.size,
    set: (projects) => {
      const before = new Map(series);
      configured = new Map(projects.map((project) => [project.id, project]));
      series.clear();
      for (const project of projects) {
        if (!isOwned(project.id)) continue;
        const kept = before.get(project.id) ?? new ProjectSeries(project);
        kept.configure(project);
        series.set(project.id, kept);
      }
    },
    change: ({ taken, dropped }) => {
      for (const project of dropped) series.delete(project);
      for (const { project, health } of taken) {
        const watched = configured.get(project);
        if (watched !== undefined) series.set(project, new ProjectSeries({ ...watched, health }));
      }
    },
    shown: (snapshot) => {
      const all = [...series.values()].filter(({ id }) => isOwned(id));
      if (worker === undefined || snapshot === undefined) return all;
      const stored = new Set(snapshot.projects.map(({ project }) => project));
      return all.filter(({ id }) => stored.has(id));
    },
  };
}
