import { join } from 'node:path';
import Database from 'better-sqlite3';
import { systemClock } from '../../src/app/clock.ts';
import type { Settlement } from '../../src/domain/failure.ts';
import type { FailureRow, FinishRow, ProjectSnapshot } from '../../src/monitor/ports/store.ts';
import type * as SqliteStore from '../../src/store/sqlite/sqlite-store.ts';

/** What the workload tells: true from then on. */
export type Line =
  | { readonly what: 'configured' | 'settled'; readonly rows: readonly string[] }
  | {
      readonly what: 'committed';
      readonly rows: readonly string[];
      readonly finishes: readonly string[];
    }
  /** Numbers of calls that failed after the opening, and of failures that the store emitted. */
  | { readonly what: 'ended'; readonly failed: number; readonly emitted: number };

/** Rows that a store has promised to keep. */
export interface Promised {
  /** `transition_id project prompt from to`, in order. */
  readonly transitions: readonly string[];
  /** `finish_id project experiment`, in order. */
  readonly finishes: readonly string[];
  /** `transition_id label`, in the order of their settlement. */
  readonly settled: readonly string[];
}

/** Returns the label under which a settled failure is counted. */
export function labelOf(settlement: Settlement | undefined): string {
  return settlement?.errorInfo?.error_id ?? 'none';
}

/** Returns what is promised after 0, 1, 2 … lines. */
export function promisedAfter(lines: readonly Line[]): readonly [Promised, ...Promised[]] {
  const states: [Promised, ...Promised[]] = [{ transitions: [], finishes: [], settled: [] }];
  for (const line of lines) {
    const { transitions, finishes, settled } = states.at(-1) ?? states[0];
    states.push({
      transitions: line.what === 'committed' ? [...transitions, ...line.rows] : transitions,
      finishes: line.what === 'committed' ? [...finishes, ...line.finishes] : finishes,
      settled: line.what === 'settled' ? [...settled, ...line.rows] : settled,
    });
  }
  return states;
}

export type Content = Awaited<ReturnType<typeof readContent>>;

/** Returns what a store has that knew no experiments. */
export function withoutExperiments(content: Content): Content {
  const unlabelled = <Row extends object>(rows: readonly Row[]) =>
    rows.map((row) => ({ ...row, experiment: undefined }));
  // Whether one has still to finish is not known either.
  const projects = content.projects.map(({ listings, ...project }) => ({
    ...project,
    listings: new Map(
      Array.from(listings, ([kind, figures]) => [kind, { ...figures, isIdle: false }]),
    ),
  }));
  return {
    ...content,
    projects,
    transitions: unlabelled(content.transitions),
    failures: unlabelled(content.failures),
    settlements: unlabelled(content.settlements),
    statuses: unlabelled(content.statuses),
    finishes: [],
    experiments: [],
  };
}

/** Opens a store as the daemon does, reads everything, and closes it. @throws if that fails or the file is damaged */
export async function readContent(source: string, path: string) {
  const { openStore } = (await import(
    join(source, 'store/sqlite/sqlite-store.ts')
  )) as typeof SqliteStore;
  const store = await openStore({ path, clock: systemClock, emit: () => {} });
  try {
    const { projects } = await store.snapshot();
    const states = projects.flatMap(({ project }) =>
      (['PENDING', 'RUNNING'] as const).map((status) => ({ project, status })),
    );
    const events = await store.events({ transition: 0, settlement: 0, finish: 0 }, 1_000_000);
    const content = {
      transitions: (await store.transitions({})).toReversed(),
      failures: await store.failures({}),
      settlements: events.settled,
      finishes: events.finishes,
      experiments: await store.experiments({}),
      pending: await store.pendingFailures({ limitPerProject: 1_000_000 }),
      statuses: await store.statuses({}),
      durations: await store.durations(states, 0),
      projects: projects.map(inOrder),
    };
    assertIntact(path);
    return content;
  } finally {
    await store.close();
  }
}

/** Sorts the totals of a project. */
function inOrder({ listings, ...project }: ProjectSnapshot) {
  const sorted = Array.from(listings, ([kind, { transitions, ...listing }]) => {
    return [kind, { ...listing, transitions: transitions.map(String).toSorted() }] as const;
  });
  return { ...project, listings: new Map(sorted) };
}

function assertIntact(path: string): void {
  const db = new Database(path, { readonly: true });
  const check = String(db.pragma('integrity_check', { simple: true }));
  db.close();
  if (check !== 'ok') throw new Error(`integrity_check: ${check}`);
}

/** Compares a store with what it may have promised: one of these states. Returns what is wrong. */
export function findFault(content: Content, promised: readonly Promised[]): string | undefined {
  const transitions = content.transitions.map((row) =>
    [row.transitionId, row.project, row.id, row.from, row.to].join(' '),
  );
  const finishes = content.finishes.map(finishRow);
  const settled = content.settlements.map(settledRow);
  const faults = promised.map((state) => {
    const expected = [...state.transitions, ...state.finishes, ...state.settled];
    return compare(expected, [...transitions, ...finishes, ...settled]);
  });
  return faults.includes(undefined) ? findContradiction(content) : faults[0];
}

/** Returns a contradiction to the transitions and settlements, from which all else follows. */
function findContradiction(content: Content): string | undefined {
  const { transitions, settlements, failures, pending, statuses, projects } = content;
  const { experiments, finishes } = content;
  const last = new Map(transitions.map(({ project, id, to }) => [`${project} ${id}`, to]));
  const finished = experiments.filter(({ finishedAt }) => finishedAt !== undefined);
  const isSettled = new Set(settlements.map(({ transitionId }) => transitionId));
  const facts: Readonly<
    Record<string, readonly [expected: readonly string[], found: readonly string[]]>
  > = {
    statuses: [
      [...last].map(([prompt, status]) => `${prompt} ${status}`),
      statuses
        // A prompt has no transition before it moves.
        .filter(({ project, promptId }) => last.has(`${project} ${promptId}`))
        .map(({ project, promptId, status }) => `${project} ${promptId} ${status}`),
    ],
    'settled failures': [
      settlements.map(settledRow),
      failures.filter(({ settlement }) => settlement !== undefined).map(settledRow),
    ],
    'pending failures': [
      transitions
        .filter(({ to, transitionId }) => to === 'FAILED' && !isSettled.has(transitionId))
        .map(({ transitionId }) => String(transitionId)),
      pending.map(({ transitionId }) => String(transitionId)),
    ],
    totals: [
      counted(transitions.map(({ project, from, to }) => `${project} ${from} ${to}`)),
      projects.flatMap(({ project, listings }) =>
        (listings.get('prompt')?.transitions ?? []).map(
          (total) => `${project} ${total.replaceAll(',', ' ')}`,
        ),
      ),
    ],
    'error totals': [
      counted(settlements.map(({ project, settlement }) => `${project} ${labelOf(settlement)}`)),
      projects.flatMap(({ project, listings }) =>
        (listings.get('prompt')?.errors ?? []).map(
          ({ label, count }) => `${project} ${label} ${count}`,
        ),
      ),
    ],
    experiments: [
      counted(
        statuses.map(({ project, experiment, status }) => `${project} ${experiment} ${status}`),
      ),
      experiments.flatMap(({ project, experiment, counts }) =>
        Object.entries(counts)
          .filter(([, count]) => count > 0)
          .map(([status, count]) => `${project} ${experiment} ${status} ${count}`),
      ),
    ],
    finishes: [
      finished.map((row) => `${row.project} ${row.experiment} ${row.finishedAt}`),
      finished.map(({ project, experiment }) => {
        const isOwn = (row: FinishRow) => row.project === project && row.experiment === experiment;
        return `${project} ${experiment} ${finishes.findLast(isOwn)?.at}`;
      }),
    ],
  };
  for (const [what, [expected, found]] of Object.entries(facts)) {
    const difference = compare(expected, found);
    if (difference !== undefined) return `torn ${what}: ${difference}`;
  }
  return undefined;
}

function finishRow({ finishId, project, experiment }: FinishRow): string {
  return `${finishId} ${project} ${experiment}`;
}

function settledRow({ transitionId, settlement }: FailureRow): string {
  return `${transitionId} ${labelOf(settlement)}`;
}

function counted(names: readonly string[]): readonly string[] {
  return [...Map.groupBy(names, (name) => name)].map(([name, all]) => `${name} ${all.length}`);
}

/** Returns how the found rows differ from the expected ones, in any order. */
function compare(expected: readonly string[], found: readonly string[]): string | undefined {
  const lost = [...new Set(expected).difference(new Set(found))];
  const more = [...new Set(found).difference(new Set(expected))];
  if (lost.length > 0) return `lost: ${lost[0]} and ${lost.length - 1} more`;
  if (more.length > 0) return `too many: ${more[0]} and ${more.length - 1} more`;
  return expected.length === found.length ? undefined : `${found.length} rows with repeats`;
}

/** Everything in a file: its version, its schema and all rows. @throws if it is damaged */
export function dump(path: string): unknown {
  const db = new Database(path);
  try {
    const schema = db.prepare('SELECT type, name, sql FROM sqlite_schema ORDER BY name').all();
    const tables = schema as readonly { readonly type: string; readonly name: string }[];
    const rows = tables
      .filter(({ type }) => type === 'table')
      .map(({ name }) => db.prepare(`SELECT * FROM "${name}"`).all());
    assertIntact(path);
    return { version: db.pragma('user_version', { simple: true }), schema, rows };
  } finally {
    db.close();
  }
}
