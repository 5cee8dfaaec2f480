import { UNFINISHED_STATUSES } from '../domain/status.ts';
import type { StateExpectations } from '../monitor/ports/expectations.ts';
import {
  SINGLE,
  familyRenderer,
  toSeconds,
  type Family,
  type RenderProjects,
} from './exposition.ts';
import type { ProjectCounts, ScrapedProject } from './scraped-project.ts';

const STATES = UNFINISHED_STATUSES.map((status) => ({ labels: { status } }));

/** Metrics of what is expected of the prompts of a project in each status. */
const STATE_FAMILIES: readonly Family<StateExpectations>[] = [
  {
    name: 'evalwatch_prompt_state_limit_seconds',
    type: 'gauge',
    help: 'How long a prompt may stay in the status, in seconds; absent without a limit.',
    samples: STATES,
    values: (states) => UNFINISHED_STATUSES.map((status) => toSeconds(states[status].limitMs)),
  },
  {
    name: 'evalwatch_prompt_state_typical_seconds',
    type: 'gauge',
    help: 'Median time that prompts spent in the status over the last 30 days, in seconds.',
    samples: STATES,
    values: (states) => UNFINISHED_STATUSES.map((status) => toSeconds(states[status].typicalMs)),
  },
];

/** Metrics of the configured objective of a project. */
const OBJECTIVE_FAMILIES: readonly Family<ProjectCounts>[] = [
  {
    name: 'evalwatch_project_max_failure_ratio',
    type: 'gauge',
    help: 'Configured share of the finished prompts that may fail, 0 to 0.8; absent without an objective.',
    samples: SINGLE,
    values: ({ expect }) => [expect.maxFailureRatio],
  },
];

/** Metrics whose labels say more than the id of the project. */
const INFO_FAMILIES: readonly Family<ProjectCounts>[] = [
  {
    name: 'evalwatch_project_info',
    type: 'gauge',
    help: 'Always 1; the label team is the team of the project, empty without one.',
    samples: SINGLE,
    values: () => [1],
  },
];

/** Creates the renderers of what is expected of each project, and of its team. */
export function createExpectationRenderers(): readonly RenderProjects<ScrapedProject>[] {
  return [
    familyRenderer(STATE_FAMILIES, ({ counts, expectations }, add) => {
      if (expectations !== undefined) add(counts.labels, expectations);
    }),
    familyRenderer(OBJECTIVE_FAMILIES, ({ counts }, add) => add(counts.labels, counts)),
    familyRenderer(INFO_FAMILIES, ({ counts }, add) => add(counts.infoLabels, counts)),
  ];
}
