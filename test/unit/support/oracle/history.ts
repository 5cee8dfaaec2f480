import type { JournalEntry } from '../../../../src/simulator/world/journal.ts';
import type {
  FailureRow,
  LogLine,
  Observation,
  Run,
  StatusRow,
  TransitionRow,
} from '../../../support/oracle/observation.ts';

// A small history that a correct daemon has seen, second by second:
//   1 a PENDING, b RUNNING, d COMPLETED: the baseline    5 a is RUNNING again and listed twice, c is new
//   2 a RUNNING, b FAILED                                6 an item without an id hides c
//   3 a FAILED, b is missing                             7 a COMPLETED, c FAILED
//   4 b is gone
// The project's datasets: 1 x without a status, 2 x RUNNING.

const ERROR = { error_id: 'E', error_msg: 'broken' };
const PROJECT = 'p';

export function time(second: number, ms = 0): string {
  return new Date(second * 1000 + ms).toISOString();
}

function listing(
  second: number,
  items: JournalEntry['items'],
  more: Partial<JournalEntry> = {},
): JournalEntry {
  const at = second * 1000;
  return {
    seq: second,
    project: PROJECT,
    kind: 'prompt',
    producedAt: at,
    finishedAt: at + 5,
    unchanged: false,
    items,
    ...more,
  };
}

export function move(
  transition_id: number,
  second: number,
  [id, from, to]: readonly [id: string, from: string, to: string],
  kind: 'prompt' | 'dataset' = 'prompt',
): TransitionRow {
  const about = kind === 'prompt' ? { prompt_id: id } : { dataset_id: id };
  return { transition_id, time: time(second, 10), project: PROJECT, ...about, from, to };
}

export function failure(transition_id: number, second: number, prompt_id: string): FailureRow {
  const about = { transition_id, time: time(second, 10), project: PROJECT, prompt_id };
  return { ...about, error_info: ERROR, reason: null, settled: true };
}

export function polled(second: number): LogLine {
  return { time: time(second, 20), level: 'debug', event: 'poll.completed', project: PROJECT };
}

export function told({ time: at, ...fields }: TransitionRow): LogLine {
  const kind = fields.prompt_id === undefined ? 'dataset' : 'prompt';
  return { time: at, level: 'info', event: `${kind}.transition`, ...fields };
}

export function toldFailed({ transition_id, prompt_id }: FailureRow, second: number): LogLine {
  return {
    time: time(second, 30),
    level: 'error',
    event: 'prompt.failed',
    project: PROJECT,
    prompt_id,
    transition_id,
    error_info: ERROR,
  };
}

const transitions = [
  move(1, 2, ['a', 'PENDING', 'RUNNING']),
  move(2, 2, ['b', 'RUNNING', 'FAILED']),
  move(3, 2, ['x', 'NONE', 'RUNNING'], 'dataset'),
  move(4, 3, ['a', 'RUNNING', 'FAILED']),
  move(5, 5, ['a', 'FAILED', 'RUNNING']),
  move(6, 5, ['c', 'NEW', 'UNKNOWN']),
  move(7, 7, ['a', 'RUNNING', 'COMPLETED']),
  move(8, 7, ['c', 'UNKNOWN', 'FAILED']),
];
const failures = [failure(2, 2, 'b'), failure(4, 3, 'a'), failure(8, 7, 'c')];

const D = ['d', 'COMPLETED'] as const;
const journal = [
  listing(1, [['a', 'PENDING'], ['b', 'RUNNING'], D]),
  listing(1, [['x', null]], { kind: 'dataset', seq: 11 }),
  listing(2, [['a', 'RUNNING'], ['b', 'FAILED'], D]),
  listing(2, [['x', 'RUNNING']], { kind: 'dataset', seq: 12 }),
  listing(3, [['a', 'FAILED'], D]),
  listing(4, [['a', 'FAILED'], D], { unchanged: true }),
  listing(5, [['a', 'PENDING'], ['c', 'PAUSED'], D, ['a', 'RUNNING']]),
  listing(6, [['a', 'RUNNING'], [null, 'PAUSED'], D]),
  listing(7, [['a', 'COMPLETED'], ['c', 'FAILED'], D]),
];

const baselines = ['prompt', 'dataset'].map((kind) => ({
  time: time(1, 15),
  level: 'info',
  event: 'project.baseline',
  project: PROJECT,
  kind,
}));
const gone = {
  time: time(4, 15),
  level: 'info',
  event: 'prompt.gone',
  project: PROJECT,
  prompt_id: 'b',
};

export const RUN: Run = {
  startedAt: 500,
  killed: false,
  lines: [
    ...baselines,
    gone,
    ...transitions.map(told),
    toldFailed(failures[0] ?? failure(0, 0, ''), 2),
    toldFailed(failures[1] ?? failure(0, 0, ''), 3),
    toldFailed(failures[2] ?? failure(0, 0, ''), 7),
    ...[1, 2, 3, 4, 5, 6, 7].map(polled),
  ],
};

function status(prompt_id: string, text: string, since: string): StatusRow {
  return { project: PROJECT, prompt_id, status: text, since, missing: 0 };
}

export const RIGHT: Observation = {
  journal,
  key: 'the-key-of-this',
  missingAfter: 2,
  projects: [{ id: PROJECT, datasets: true }],
  runs: [RUN],
  transitions: transitions.toReversed(),
  failures: failures.toReversed(),
  statuses: [
    status('a', 'COMPLETED', time(7, 10)),
    status('c', 'FAILED', time(7, 10)),
    status('d', 'COMPLETED', time(1, 10)),
  ],
  samples: samplesOf(transitions),
  gave: (_id, errorInfo) => errorInfo === ERROR,
};

/** Returns /metrics of a daemon that made these transitions and ended as {@link RIGHT} does. */
export function samplesOf(rows: readonly TransitionRow[]): ReadonlyMap<string, number> {
  const samples = new Map([
    ['evalwatch_prompts{project="p",status="PENDING"}', 0],
    ['evalwatch_prompts{project="p",status="COMPLETED"}', 2],
    ['evalwatch_prompts{project="p",status="FAILED"}', 1],
    ['evalwatch_prompts_missing{project="p"}', 0],
    ['evalwatch_prompts_gone_total{project="p"}', 1],
    ['evalwatch_datasets{project="p",status="RUNNING"}', 1],
  ]);
  const statuses = ['NEW', 'PENDING', 'RUNNING', 'COMPLETED', 'FAILED', 'UNKNOWN', 'NONE'];
  for (const kind of ['prompt', 'dataset'] as const) {
    const ofKind = rows.filter((row) => row[`${kind}_id`] !== undefined);
    for (const from of statuses) {
      for (const to of statuses) {
        const count = ofKind.filter((row) => row.from === from && row.to === to).length;
        const labels = `project="p",from="${from}",to="${to}"`;
        samples.set(`evalwatch_${kind}_transitions_total{${labels}}`, count);
      }
    }
    const failed = ofKind.filter(({ to }) => to === 'FAILED').map((row) => Date.parse(row.time));
    if (failed.length > 0) {
      const series = `evalwatch_${kind}_last_failure_timestamp_seconds{project="p"}`;
      samples.set(series, Math.max(...failed) / 1000);
    }
  }
  return samples;
}
