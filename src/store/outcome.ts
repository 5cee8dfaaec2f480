import {
  type Experiment,
  type ExperimentChange,
  isFinishing,
  nextExperiment,
} from '../domain/experiment.ts';
import type { Kind } from '../domain/status.ts';
import { lostOldest, nextSummary, type Summary } from '../domain/summary.ts';
import type { Changes } from '../domain/transition.ts';
import type { FinishRow, PollCommit, ProjectFigures } from '../monitor/ports/store.ts';
import { readOldestOthers } from './projects.ts';
import { EXPERIMENT_COLUMNS, OWN_EXPERIMENT_COLUMNS } from './reads.ts';
import { type ExperimentColumns, toExperimentRow } from './rows.ts';
import type { Db } from './sql.ts';

/** What a commit stores besides health, records and transitions. */
export interface Outcome {
  readonly summaries: ReadonlyMap<Kind, Summary>;
  readonly experiments: readonly NextExperiment[];
}

/** An experiment after a commit. */
export interface NextExperiment extends Experiment {
  readonly name: string;
  /** Whether it finishes with the commit. */
  readonly finishes: boolean;
}

/** Returns the finishes of a commit with the numbers that it gave them. */
export function toFinishes(
  { project, at }: PollCommit,
  { experiments }: Outcome,
  ids: readonly number[],
): readonly FinishRow[] {
  return experiments
    .filter(({ finishes }) => finishes)
    .map(({ name: experiment, counts, startedAt = at, endedAt = at }, index) => {
      const finishId = ids[index] ?? 0;
      return { finishId, at, project, experiment, counts, startedAt, endedAt };
    });
}

/** Maximum number of experiments that are read at once. */
const PAGE_EXPERIMENTS = 1000;

/**
 * Computes what a commit makes of the project's summaries and experiments, provided that the project still has the poll's token.
 * @param before the summaries that are stored under this token
 * @throws {StoreError}
 */
export async function outcomeOf(
  db: Db,
  poll: PollCommit,
  before: ProjectFigures['summaries'],
): Promise<Outcome> {
  const summaries = new Map<Kind, Summary>();
  for (const [kind, { summary }] of poll.listings) {
    const lost = lostOldest(before[kind], summary);
    const others = lost.length > 0 ? await readOldestOthers(db, poll, kind, lost) : undefined;
    summaries.set(kind, nextSummary(before[kind], summary, poll.at, others));
  }
  const [changes, prompts] = [poll.listings.get('prompt'), summaries.get('prompt')];
  if (changes === undefined || prompts === undefined) return { summaries, experiments: [] };
  const experiments = await experimentsAfter(db, poll, changes, before.prompt.finishing === true);
  summaries.set('prompt', { ...prompts, finishing: experiments.some(isFinishing) });
  return { summaries, experiments };
}

/** Computes the experiments that change, and those that can finish without a change. */
async function experimentsAfter(
  db: Db,
  { project, at }: PollCommit,
  { experiments, complete }: Changes,
  canFinish: boolean,
): Promise<readonly NextExperiment[]> {
  const changes = new Map(experiments.entries());
  const after: NextExperiment[] = [];
  const add = (name: string, before?: Experiment, change?: ExperimentChange) => {
    const next = nextExperiment(before, change, { at, complete });
    const finishes = next.finishedAt !== undefined && before?.finishedAt === undefined;
    after.push({ ...next, name, finishes });
  };
  const names = [...changes.keys()];
  for (let start = 0; start < names.length; start += PAGE_EXPERIMENTS) {
    const page = names.slice(start, start + PAGE_EXPERIMENTS);
    const rows = await db.read<ExperimentColumns>('named_experiments', NAMED, {
      project,
      names: JSON.stringify(page),
    });
    const known = new Map(rows.map((row) => [row.experiment, toExperimentRow(row)]));
    for (const name of page) add(name, known.get(name), changes.get(name));
  }
  for (let last: number | undefined = canFinish ? 0 : undefined; last !== undefined;) {
    const asked = { project, last, limit: PAGE_EXPERIMENTS };
    const rows = await db.read<ExperimentColumns>('finishing_experiments', FINISHING, asked);
    for (const row of rows)
      if (!changes.has(row.experiment)) add(row.experiment, toExperimentRow(row));
    last = rows.length < PAGE_EXPERIMENTS ? undefined : rows.at(-1)?.key;
  }
  return after;
}

/** Looks each name up. PostgreSQL knows neither their number nor, in a new store, that of the labels. */
const NAMED = `WITH named AS MATERIALIZED (
    SELECT p.project_key, p.id AS project, n.value AS experiment, (
      SELECT l.label_id FROM evalwatch.label l
      WHERE l.project_key = p.project_key AND l.text = n.value) AS label_id
    FROM evalwatch.project p CROSS JOIN json_each(:names) n WHERE p.id = :project)
  SELECT named.project, named.experiment, ${OWN_EXPERIMENT_COLUMNS}
  FROM named CROSS JOIN evalwatch.experiment e
  WHERE e.project_key = named.project_key AND e.label_id = named.label_id`;

/** Selects those of `isFinishing`, which is the condition of an index. */
const FINISHING = `SELECT ${EXPERIMENT_COLUMNS}
  FROM evalwatch.project p CROSS JOIN evalwatch.experiment e CROSS JOIN evalwatch.label l
  WHERE p.id = :project AND e.project_key = p.project_key AND e.label_id > :last AND l.label_id = e.label_id
    AND e.started_at IS NOT NULL AND e.ended_at IS NOT NULL AND e.finished_at IS NULL
  ORDER BY e.label_id LIMIT :limit`;
