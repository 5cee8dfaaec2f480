import type { ProjectConfig } from '../config/config.ts';
import type { Schedule } from '../schedule/calendar.ts';

/** A project and the times of its next runs, epoch ms. The delay by jitter is not included. */
export interface PlannedProject {
  readonly project: ProjectConfig;
  readonly schedule: Schedule;
  readonly nextRuns: readonly number[];
}

const RUN_COUNT = 5;

/** Computes the next 5 runs of each project, all after `now`. */
export async function planProjects(
  projects: readonly ProjectConfig[],
  now: number,
): Promise<readonly PlannedProject[]> {
  const { parseSchedule } = await import('../schedule/calendar.ts');
  const plans = new Map<string, Omit<PlannedProject, 'project'>>();
  return projects.map((project) => {
    // Thousands of projects may share a schedule.
    const shared = `${project.schedule}\n${project.timezone}`;
    const plan =
      plans.get(shared) ?? planOf(parseSchedule(project.schedule, project.timezone), now);
    plans.set(shared, plan);
    return { project, ...plan };
  });
}

function planOf(schedule: Schedule, now: number): Omit<PlannedProject, 'project'> {
  return { schedule, nextRuns: nextRuns(schedule, now) };
}

function nextRuns(schedule: Schedule, now: number): readonly number[] {
  const runs: number[] = [];
  let at = now;
  while (runs.length < RUN_COUNT) {
    at = schedule.nextAfter(at);
    runs.push(at);
  }
  return runs;
}
