import { UNFINISHED_STATUSES } from '../domain/status.ts';
import type { StateExpectations } from '../monitor/ports/expectations.ts';
import { FamilyRenderer, SINGLE, toSeconds, type Family } from './exposition.ts';
import type { ProjectSeries } from './project-series.ts';

/** Renders the series of what is expected of each project, and of its team. */
export class ExpectationRenderer {
  readonly #states = new FamilyRenderer(STATE_FAMILIES);
  readonly #objectives = new FamilyRenderer(OBJECTIVE_FAMILIES);
  readonly #infos = new FamilyRenderer(INFO_FAMILIES);

  add(series: ProjectSeries, states: StateExpectations | undefined): void {
    if (states !== undefined) this.#states.add(series.labels, states);
    this.#objectives.add(series.labels, series);
    this.#infos.add(series.infoLabels, series);
  }

  async finish(): Promise<string> {
    return (
      (await this.#states.finish()) +
      (await this.#objectives.finish()) +
      (await this.#infos.finish())
    );
  }
}

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
const OBJECTIVE_FAMILIES: readonly Family<ProjectSeries>[] = [
  {
    name: 'evalwatch_project_max_failure_ratio',
    type: 'gauge',
    help: 'Configured share of the finished prompts that may fail, 0 to 0.8; absent without an objective.',
    samples: SINGLE,
    values: ({ expect }) => [expect.maxFailureRatio],
  },
];

/** Metrics whose labels say more than the id of the project. */
const INFO_FAMILIES: readonly Family<ProjectSeries>[] = [
  {
    name: 'evalwatch_project_info',
    type: 'gauge',
    help: 'Always 1; the label team is the team of the project, empty without one.',
    samples: SINGLE,
    values: () => [1],
  },
];
