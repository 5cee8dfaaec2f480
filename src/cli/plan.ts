import type { ProjectConfig } from '../config/config.ts';
import type { Schedule } from '../schedule/calendar.ts';

/** A project and when it will run, epoch ms; the jitter comes on top. */
export interface PlannedProject {
  readonly project: ProjectConfig;
  readonly schedule: Schedule;
  readonly nextRuns: readonly number[];
}

const RUNS = 5;

/** The next 5 runs of each project, strictly after `now`. */
export async function planProjects(
  projects: readonly ProjectConfig[],
  now: number,
): Promise<readonly PlannedProject[]> {
  const { parseSchedule } = await import('../schedule/calendar.ts');
  return projects.map((project) => {
    const schedule = parseSchedule(project.schedule, project.timezone);
    return { project, schedule, nextRuns: nextRuns(schedule, now) };
  });
}

function nextRuns(schedule: Schedule, now: number): readonly number[] {
  const runs: number[] = [];
  let at = now;
  while (runs.length < RUNS) {
    at = schedule.nextAfter(at);
    runs.push(at);
  }
  return runs;
}
