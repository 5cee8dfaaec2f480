import type { ProjectSchedule } from '../monitor/ports/watched-project.ts';
import {
  SINGLE,
  familyRenderer,
  toSeconds,
  type Family,
  type RenderProjects,
} from './exposition.ts';
import type { ScrapedProject } from './scraped-project.ts';

/** Metrics of the schedule of a project. */
const SCHEDULE_FAMILIES: readonly Family<ProjectSchedule>[] = [
  {
    name: 'evalwatch_project_schedule_max_interval_seconds',
    type: 'gauge',
    help: 'Longest gap between two scheduled polls of the project in the years to come, in seconds.',
    samples: SINGLE,
    values: ({ maxIntervalSeconds }) => [maxIntervalSeconds],
  },
  {
    name: 'evalwatch_project_next_poll_timestamp_seconds',
    type: 'gauge',
    help: 'When the next poll of the project is due, Unix time in seconds; past if it has not started.',
    samples: SINGLE,
    values: ({ nextPollAt }) => [toSeconds(nextPollAt)],
  },
];

export function createScheduleRenderer(): RenderProjects<ScrapedProject> {
  return familyRenderer(SCHEDULE_FAMILIES, ({ counts, schedule }, add) => {
    if (schedule !== undefined) add(counts.labels, schedule);
  });
}
