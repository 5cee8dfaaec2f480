import type { Kind } from '../../../src/domain/status.ts';
import type { Run, Statements } from './statement.ts';
import {
  addMove,
  countDurations,
  type DurationRow,
  type Health,
  type ProjectRow,
  type RecordRow,
  refusal,
  type RowsOfProject,
  rowsOf,
  type Tables,
  type TransitionRow,
} from './tables.ts';

type Move = Pick<TransitionRow, 'kind' | 'from_status' | 'to_status'> & {
  readonly id: string;
  readonly name?: string | null;
};

interface NewRecord extends Omit<RecordRow, 'name' | 'status_raw' | 'timestamp'> {
  readonly is_new: boolean;
  readonly name?: string | null;
  readonly status_raw?: string | null;
  readonly timestamp?: string | null;
}

interface Flushed extends Health {
  readonly id: string;
  readonly epoch: number;
  readonly version?: number | null;
  readonly next_tick_at?: number | null;
}

/** Models src/store/postgres/sql/poll-commit.ts, known.ts, and projects.ts but for changes of the configuration. */
export function pollStatements(tables: Tables): Statements {
  const { project, last } = tables;

  return {
    commit_poll: (values: unknown[]) => {
      const [id, epoch, version, prompts, datasets, records, moves, at] = values as [
        ...[string, number, number, string | null, string | null, string, string, number],
      ];
      const [up, consecutive_failures, reason, last_poll_at, last_success_at] = values.slice(8) as [
        ...[boolean, number, string | null, number | null, number | null],
      ];
      const [nextTickAt, worker, steady_since, durations = '[]'] = values.slice(13) as [
        ...[number | null, string, number | null, string?],
      ];
      const found = project.get(id);
      if (found?.epoch !== epoch || found.version !== version || found.owner !== worker) return [];
      const rows = rowsOf(tables, found.project_key);
      putRecords(rows, JSON.parse(records) as readonly NewRecord[]);
      found.version += 1;
      if (prompts !== null) found.prompts = frozen(prompts);
      if (datasets !== null) found.datasets = frozen(datasets);
      const times = { last_poll_at, last_success_at, steady_since };
      setHealth(found, { up, consecutive_failures, reason, ...times }, nextTickAt);
      countDurations(rows, JSON.parse(durations) as readonly DurationRow[]);
      const ids = (JSON.parse(moves) as readonly Move[]).map((move) => {
        const { kind, from_status, to_status, id: record_id, name: record_name = null } = move;
        const record = { kind, from_status, to_status, record_id, record_name };
        return addMove(tables, found, { at, ...record });
      });
      return [{ transition_ids: ids.length === 0 ? null : ids }];
    },
    resolve_commit: ([id, epoch, version, worker, at]: [
      ...[string, number, number, string, number],
    ]) => {
      const found = project.get(id);
      if (found === undefined) return [];
      const was = { ...found };
      const ids = [...rowsOf(tables, found.project_key).transitions.values()]
        .filter((row) => row.epoch === epoch && row.version === version + 1 && row.at === at)
        .map((row) => row.transition_id);
      const isOwned = isEqual(found.owner, worker);
      const mayCome = found.epoch === epoch && found.version <= version && isOwned === true;
      if (mayCome) found.epoch = last.epoch += 1;
      return [
        {
          renewed: mayCome ? found.epoch : null,
          was_same: was.epoch === epoch && was.version === version && isOwned,
          is_next: was.epoch === epoch && was.version === version + 1 && isOwned,
          transition_ids: ids.length === 0 ? null : ids,
        },
      ];
    },
    refusal: ([id, epoch, worker]: [string, number | null, string]) => {
      const found = project.get(id);
      if (found === undefined) return [];
      const [isEpoch, isOwned] = [isEqual(found.epoch, epoch), isEqual(found.owner, worker)];
      return [{ is_owned: isEpoch === false || isOwned === false ? false : isEpoch && isOwned }];
    },
    oldest_others: ([id, kind, statuses, others]: [string, Kind, string[], string[]]) => {
      const found = project.get(id);
      if (found === undefined) return [];
      const isLeftOut = new Set(others);
      const oldest = new Map<string, number>();
      for (const { status, since, ...row } of rowsOf(tables, found.project_key).records[
        kind
      ].values()) {
        if (row.gone || !statuses.includes(status) || isLeftOut.has(row.id)) continue;
        oldest.set(status, Math.min(oldest.get(status) ?? since, since));
      }
      return Array.from(oldest, ([status, since]) => ({ status, since }));
    },
    load_health: ([id]: [string]) => {
      const found = project.get(id);
      if (found === undefined) return [];
      const { up, consecutive_failures, reason, last_poll_at, last_success_at, steady_since } =
        found;
      return [{ up, consecutive_failures, reason, last_poll_at, last_success_at, steady_since }];
    },
    flush_health: ([waiting, worker]: [string, string]) =>
      (JSON.parse(waiting) as readonly Flushed[]).flatMap((health) => {
        const { id, epoch, version = null, next_tick_at = null } = health;
        const found = project.get(id);
        if (found?.epoch !== epoch || found.owner !== worker) return [];
        if (version !== null && found.version !== version) return [];
        setHealth(found, health, next_tick_at);
        return [{ id }];
      }),
    outdated_projects: ([waiting, worker]: [string, string]) =>
      (JSON.parse(waiting) as readonly Flushed[]).flatMap(({ id, epoch }) => {
        const found = project.get(id);
        return found?.epoch === epoch && found.owner === worker ? [{ id }] : [];
      }),
  };
}

/** Models the statement that `knownQuery` builds for these kinds. @param isSome whether only some ids of a kind are read */
export function knownStatement(
  tables: Tables,
  kinds: readonly Kind[],
  isSome: (kind: Kind) => boolean,
): Run {
  return ([id, ...ids]: string[]) => {
    const found = tables.project.get(id ?? '');
    if (found === undefined) return [];
    const { records } = rowsOf(tables, found.project_key);
    const { version, prompts: prompt, datasets: dataset } = found;
    const lists = kinds.map((kind) => {
      const wanted = isSome(kind)
        ? (JSON.parse(ids.shift() ?? '') as readonly string[]).flatMap((one) => {
            return records[kind].get(one) ?? [];
          })
        : [...records[kind].values()];
      return [kind, wanted.length === 0 ? null : wanted.map(columnsOf)];
    });
    return [{ version, summaries: { prompt, dataset }, records: Object.fromEntries(lists) }];
  };
}

function columnsOf({ id, status, status_raw, name, timestamp, since, missing, gone }: RecordRow) {
  return [id, status, status_raw, name, timestamp, since, missing, gone];
}

/** @throws {DatabaseError} before anything is changed, if a new record is there already */
function putRecords({ records }: RowsOfProject, changed: readonly NewRecord[]): void {
  const added = new Set<string>();
  for (const { kind, id, is_new } of changed) {
    if (!is_new) continue;
    if (records[kind].has(id) || added.has(`${kind} ${id}`)) throw refusal('23505', 'record_pkey');
    added.add(`${kind} ${id}`);
  }
  for (const { is_new, name = null, status_raw = null, timestamp = null, ...row } of changed) {
    const list = records[row.kind];
    if (is_new || list.has(row.id)) list.set(row.id, { ...row, name, status_raw, timestamp });
  }
}

/** Compares like `one = other` of SQL. */
function isEqual(one: unknown, other: unknown): boolean | null {
  return one === null || other === null ? null : one === other;
}

function setHealth(row: ProjectRow, health: Health, nextTickAt: number | null): void {
  row.up = health.up;
  row.consecutive_failures = health.consecutive_failures;
  row.reason = health.reason;
  row.last_poll_at = health.last_poll_at;
  row.last_success_at = health.last_success_at;
  row.steady_since = health.steady_since;
  row.next_tick_at = nextTickAt ?? row.next_tick_at;
}

function frozen(json: string): object {
  return freeze(JSON.parse(json)) as object;
}

function freeze(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  for (const part of Object.values(value)) freeze(part);
  return Object.freeze(value);
}
