import { DatabaseError } from 'pg';
import type { Kind } from '../../../src/domain/status.ts';

// The tables of src/store/postgres/migrations, with the names of their columns. A timestamptz is in epoch µs.

export interface WorkerRow {
  readonly worker: string;
  readonly expires_us: number;
  readonly program_version: string;
  readonly config_digest: string;
}

export interface Health {
  up: boolean;
  consecutive_failures: number;
  reason: string | null;
  last_poll_at: number | null;
  last_success_at: number | null;
  steady_since: number | null;
}

export interface ProjectRow extends Health {
  readonly project_key: number;
  readonly id: string;
  readonly configured_at: number;
  removed_at: number | null;
  owner: string | null;
  epoch: number;
  version: number;
  /** Both frozen: every answer has the same object. */
  prompts: object;
  datasets: object;
  next_tick_at: number | null;
}

export interface RecordRow {
  readonly kind: Kind;
  readonly id: string;
  readonly name: string | null;
  readonly since: number;
  readonly missing: number;
  readonly gone: boolean;
  readonly status: string;
  readonly status_raw: string | null;
  readonly timestamp: string | null;
}

export interface TransitionRow {
  readonly transition_id: number;
  readonly project_key: number;
  readonly at: number;
  readonly epoch: number;
  readonly version: number;
  readonly kind: Kind;
  readonly from_status: string;
  readonly to_status: string;
  readonly record_id: string;
  readonly record_name: string | null;
}

export interface FailureRow {
  readonly transition_id: number;
  readonly project_key: number;
  claimed_by: string | null;
  tries: number;
  useless_tries: number;
  first_try_at: number | null;
  last_try_at: number | null;
  next_try_at: number;
  settled_at: number | null;
  error_id: string | null;
  error_msg: string | null;
  error_msg_truncated: boolean;
  reason: string | null;
  cause: string | null;
}

interface ErrorTotalRow {
  readonly label: string;
  readonly place: number | null;
  count: number;
  readonly first_seen_at: number;
  last_seen_at: number;
}

export interface DurationRow {
  readonly status: string;
  readonly day: number;
  readonly bucket: number;
  count: number;
}

/** The rows that have the key of a project, which may be deleted. */
export interface RowsOfProject {
  /** By kind and id. */
  readonly records: Readonly<Record<Kind, Map<string, RecordRow>>>;
  readonly transitions: Map<number, TransitionRow>;
  /** Index of the failures that are not settled, in the order of their ids. */
  readonly pending: Map<number, FailureRow>;
  readonly errorTotals: Map<string, ErrorTotalRow>;
  /** Number of changes of the error totals. */
  errorTotalsChange: number;
  /** By status, day and bucket. */
  readonly durations: Map<string, DurationRow>;
}

export interface Tables {
  readonly worker: Map<string, WorkerRow>;
  /** By id. */
  readonly project: Map<string, ProjectRow>;
  /** The same by key. */
  readonly projectByKey: Map<number, ProjectRow>;
  readonly waste: Set<number>;
  /** Rows with a project_key, in the order of the keys. */
  readonly ofProject: Map<number, RowsOfProject>;
  /** In the order of the ids. */
  readonly transition: Map<number, TransitionRow>;
  readonly failure: Map<number, FailureRow>;
  /** settlement_id by transition_id, in the order of the settlements. */
  readonly settlement: Map<number, number>;
  /** No transition is older: most prunings find nothing. Deletions and restores leave it as it is. */
  oldestMoveAt: number;
  rateNextUs: number;
  /** Replaced as a whole. */
  configuration: { readonly epoch: number; readonly digest: string };
  /** Last numbers that the sequences gave. A statement that fails keeps those that it took. */
  readonly last: { epoch: number; project: number; transition: number; settlement: number };
}

export function createTables(): Tables {
  return {
    worker: new Map(),
    project: new Map(),
    projectByKey: new Map(),
    waste: new Set(),
    ofProject: new Map(),
    transition: new Map(),
    failure: new Map(),
    settlement: new Map(),
    oldestMoveAt: Infinity,
    rateNextUs: -Infinity,
    configuration: { epoch: 0, digest: '' },
    last: { epoch: 0, project: 0, transition: 0, settlement: 0 },
  };
}

/** Returns the function that restores the rows that all tables have now. */
export function saveTables(tables: Tables): () => void {
  const saved = copyOf(tables);
  return () => {
    for (const [name, value] of Object.entries(tables)) {
      const before: unknown = saved[name as keyof Tables];
      if (value instanceof Map && before instanceof Map) {
        value.clear();
        for (const [key, row] of before) value.set(key, row);
      } else if (value instanceof Set && before instanceof Set) {
        value.clear();
        for (const key of before) value.add(key);
      }
    }
    tables.rateNextUs = saved.rateNextUs;
    tables.configuration = saved.configuration;
    Object.assign(tables.last, saved.last);
  };
}

/** Copies the rows that statements change, and shares those that they replace. */
function copyOf(tables: Tables): Tables {
  const project = copyOfRows(tables.project);
  const failure = copyOfRows(tables.failure);
  const ofProject = new Map<number, RowsOfProject>();
  for (const [key, rows] of tables.ofProject) {
    const { prompt, dataset } = rows.records;
    const pending = new Map<number, FailureRow>();
    for (const [id, row] of rows.pending) pending.set(id, failure.get(id) ?? row);
    ofProject.set(key, {
      records: { prompt: new Map(prompt), dataset: new Map(dataset) },
      transitions: new Map(rows.transitions),
      pending,
      errorTotals: copyOfRows(rows.errorTotals),
      errorTotalsChange: rows.errorTotalsChange,
      durations: copyOfRows(rows.durations),
    });
  }
  return {
    worker: new Map(tables.worker),
    project,
    projectByKey: new Map(Array.from(project.values(), (row) => [row.project_key, row])),
    waste: new Set(tables.waste),
    ofProject,
    transition: new Map(tables.transition),
    failure,
    settlement: new Map(tables.settlement),
    oldestMoveAt: tables.oldestMoveAt,
    rateNextUs: tables.rateNextUs,
    configuration: tables.configuration,
    last: { ...tables.last },
  };
}

function copyOfRows<Key, Row extends object>(rows: ReadonlyMap<Key, Row>): Map<Key, Row> {
  const copies = new Map<Key, Row>();
  for (const [key, row] of rows) copies.set(key, { ...row });
  return copies;
}

export function rowsOf({ ofProject }: Tables, key: number): RowsOfProject {
  const rows = ofProject.get(key);
  if (rows === undefined) throw new Error(`project ${key} is not in the model`);
  return rows;
}

/** Models `LEASE_HOLDS` of src/store/postgres/ownership/lease.ts. */
export function holds({ expires_us }: WorkerRow, nowUs: number): boolean {
  return expires_us > nowUs && expires_us <= nowUs + 600_000_000;
}

/** Whether a worker has a lease that holds. */
export function isLive({ worker }: Tables, name: string, nowUs: number): boolean {
  const row = worker.get(name);
  return row !== undefined && holds(row, nowUs);
}

/** Inserts a project, and makes room for its rows. */
export function addProject(
  tables: Tables,
  { id, at, epoch }: { readonly id: string; readonly at: number; readonly epoch: number },
): void {
  const project_key = (tables.last.project += 1);
  const row: ProjectRow = {
    project_key,
    id,
    configured_at: at,
    removed_at: null,
    owner: null,
    epoch,
    version: 0,
    prompts: Object.freeze({}),
    datasets: Object.freeze({}),
    up: false,
    consecutive_failures: 0,
    reason: null,
    last_poll_at: null,
    last_success_at: null,
    steady_since: null,
    next_tick_at: null,
  };
  tables.project.set(id, row);
  tables.projectByKey.set(project_key, row);
  tables.ofProject.set(project_key, {
    records: { prompt: new Map(), dataset: new Map() },
    transitions: new Map(),
    pending: new Map(),
    errorTotals: new Map(),
    errorTotalsChange: 0,
    durations: new Map(),
  });
}

/** Inserts a transition of this version of the project, and its failure. Returns its id. */
export function addMove(
  tables: Tables,
  { project_key, epoch, version }: ProjectRow,
  move: Omit<TransitionRow, 'transition_id' | 'project_key' | 'epoch' | 'version'>,
): number {
  const transition_id = (tables.last.transition += 1);
  const rows = rowsOf(tables, project_key);
  const row = { transition_id, project_key, epoch, version, ...move };
  tables.transition.set(transition_id, row);
  tables.oldestMoveAt = Math.min(tables.oldestMoveAt, move.at);
  rows.transitions.set(transition_id, row);
  if (move.kind === 'prompt' && move.to_status === 'FAILED') {
    const failure = { transition_id, project_key, ...PENDING };
    tables.failure.set(transition_id, failure);
    rows.pending.set(transition_id, failure);
  }
  return transition_id;
}

const PENDING: Omit<FailureRow, 'transition_id' | 'project_key'> = {
  claimed_by: null,
  tries: 0,
  useless_tries: 0,
  first_try_at: null,
  last_try_at: null,
  next_try_at: 0,
  settled_at: null,
  error_id: null,
  error_msg: null,
  error_msg_truncated: false,
  reason: null,
  cause: null,
};

export function countDurations({ durations }: RowsOfProject, added: readonly DurationRow[]): void {
  for (const row of added) {
    const key = `${row.status} ${row.day} ${row.bucket}`;
    const stored = durations.get(key);
    if (stored === undefined) durations.set(key, { ...row });
    else stored.count += row.count;
  }
}

/** Compares as the collation "C" does: byte by byte of UTF-8. */
export function compareTexts(one: string, other: string): number {
  if (BEYOND_SURROGATES.test(one) || BEYOND_SURROGATES.test(other)) {
    return Buffer.compare(Buffer.from(one), Buffer.from(other));
  }
  return one === other ? 0 : one < other ? -1 : 1;
}

/** From here on UTF-16 has another order. */
const BEYOND_SURROGATES = /[\uD800-\uFFFF]/;

/** Returns the error with which the server refuses a statement. */
export function refusal(code: string, message: string): DatabaseError {
  const error = new DatabaseError(message, message.length, 'error');
  error.code = code;
  return error;
}
