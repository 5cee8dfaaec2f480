import type { Run } from './statement.ts';
import {
  compareTexts,
  type FailureRow,
  type ProjectRow,
  type RecordRow,
  type Tables,
  type TransitionRow,
} from './tables.ts';

interface FoundStatus {
  readonly project: ProjectRow;
  readonly record: RecordRow;
}

interface FoundMove {
  readonly project: ProjectRow;
  readonly move: TransitionRow;
}

interface FoundFailure extends FoundMove {
  readonly failure: FailureRow;
}

type Found = Partial<FoundStatus & FoundFailure>;

type Condition = (found: Found, ...values: (string & number)[]) => boolean | undefined;

/** The conditions of src/store/postgres/sql/row-queries.ts. */
const CONDITIONS: Readonly<Record<string, Condition>> = {
  'p.removed_at IS NULL': ({ project }) => project?.removed_at === null,
  'p.id = ?': ({ project }, id) => project?.id === id,
  'r.status = ?': ({ record }, status) => record?.status === status,
  'r.since >= ?': ({ record }, since = 0) => record && record.since >= since,
  '(-r.since, p.id, r.id) > (?, ?, ?)': (
    { project, record },
    since = 0,
    projectId = '',
    id = '',
  ) => {
    if (project === undefined || record === undefined) return false;
    if (-record.since !== since) return -record.since > since;
    return (compareTexts(project.id, projectId) || compareTexts(record.id, id)) > 0;
  },
  't.at >= ?': ({ move }, since = 0) => move && move.at >= since,
  't.transition_id < ?': ({ move }, id = 0) => move && move.transition_id < id,
  'f.cause = ? AND f.settled_at IS NOT NULL': ({ failure }, cause) => {
    return failure?.cause === cause && failure?.settled_at !== null;
  },
  'f.transition_id < ?': ({ failure }, id = 0) => failure && failure.transition_id < id,
};

/** Models the queries that are built from conditions, by the name of the text around the conditions. */
export function builtQueries(tables: Tables) {
  const statuses = (sign: 1 | -1) => () => {
    const found = [...tables.project.values()].flatMap((project) => {
      const records = tables.ofProject.get(project.project_key)?.records.prompt.values() ?? [];
      return Array.from(records, (record) => ({ project, record }));
    });
    return found
      .filter(({ record }) => !record.gone)
      .toSorted((one, other) => {
        const bySince = sign * (one.record.since - other.record.since);
        const byProject = bySince || compareTexts(one.project.id, other.project.id);
        return byProject || compareTexts(one.record.id, other.record.id);
      });
  };
  return {
    statuses_oldest: built(statuses(1), statusColumns),
    statuses_newest: built(statuses(-1), statusColumns),
    transitions: built(() => {
      const found: FoundMove[] = [];
      for (const move of tables.transition.values()) {
        const project = tables.projectByKey.get(move.project_key);
        if (project !== undefined) found.push({ project, move });
      }
      return found.toReversed();
    }, transitionColumns),
    failures: built(
      () => findFailures(tables, [...tables.failure.keys()].toReversed()),
      failureColumns,
    ),
  };
}

function built<Row extends Found>(find: () => readonly Row[], columns: (row: Row) => object) {
  /** Returns the query with these conditions. */
  return (text: string): Run => {
    const parts: { readonly condition: Condition; readonly places: number }[] = [];
    let rest = text;
    while (rest !== '') {
      const next = Object.entries(CONDITIONS).find(([known]) => rest.startsWith(known));
      if (next === undefined) throw new Error(`the model has no condition ${rest}`);
      parts.push({ condition: next[1], places: next[0].split('?').length - 1 });
      rest = rest.slice(next[0].length).replace(/^ AND /, '');
    }
    return (values: (string & number & null)[]) => {
      let next = 0;
      const asked = parts.map(({ condition, places }) => {
        const own = values.slice(next, (next += places));
        return (row: Row) => condition(row, ...own) === true;
      });
      const limit = (values[next] as number | null | undefined) ?? Infinity;
      const found = find();
      const met = asked.length === 0 ? found : found.filter((row) => asked.every((is) => is(row)));
      return (met.length > limit ? met.slice(0, limit) : met).map(columns);
    };
  };
}

/** Returns the failures of these transitions with the rows that they are joined to. */
export function findFailures(tables: Tables, ids: readonly number[]): readonly FoundFailure[] {
  const projects = tables.projectByKey;
  const found: FoundFailure[] = [];
  for (const id of ids) {
    const failure = tables.failure.get(id);
    const move = tables.transition.get(id);
    const project = projects.get(move?.project_key ?? 0);
    if (failure && move && project) found.push({ failure, move, project });
  }
  return found;
}

function statusColumns({ project, record }: FoundStatus) {
  const { id, name, status, status_raw, since, missing } = record;
  return { project: project.id, id, name, status, status_raw, since, missing };
}

export function transitionColumns({ project, move }: FoundMove) {
  const { transition_id, at, kind, record_id, from_status, to_status } = move;
  return { transition_id, at, project: project.id, kind, record_id, from_status, to_status };
}

export function failureColumns({ project, move, failure }: FoundFailure) {
  const { at, record_id, record_name } = move;
  const { transition_id, settled_at, error_id, error_msg, error_msg_truncated } = failure;
  const { reason, cause } = failure;
  const record = { transition_id, at, project: project.id, record_id, record_name };
  return { ...record, settled_at, error_id, error_msg, error_msg_truncated, reason, cause };
}
