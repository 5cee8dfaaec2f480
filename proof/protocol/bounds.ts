import type { Defines } from './spin.ts';

/** Workers, projects, and maximum numbers of events in a run. */
export interface Bounds {
  readonly what: string;
  readonly defines: Defines;
  /** Whether the tests search it too. */
  readonly isShort?: boolean;
  /** Whether the long form also proves that every run ends. */
  readonly mustEnd?: boolean;
}

/** A mistake in the model, which a search has to find. */
export interface Mistake {
  readonly what: string;
  /** Name that the model tests by `#ifdef`. */
  readonly name: string;
  readonly bounds: Bounds;
  /** Part of the assertion that a run breaks. */
  readonly notice: string;
}

const NONE: Defines = { CRASHES: 0, LOSSES: 0, LOST: 0, UNANSWERED: 0 };
const ONE_PROJECT: Defines = { ...NONE, W: 2, P: 1 };
const THREE_WORKERS: Defines = { ...ONE_PROJECT, W: 3, CHANGES: 1 };
const ONE_FAILURE: Defines = { ...ONE_PROJECT, CHANGES: 1, REPORTS: 1 };
/** The second project only has to be owned and polled. */
const TWO_PROJECTS: Defines = { ...NONE, W: 2, P: 2, CHANGES: 1, OTHERS: 0 };

const commits: Bounds = {
  what: '2 workers, 1 project: crash, lost lease, lost answer of a commit',
  defines: { ...ONE_PROJECT, CHANGES: 3, CRASHES: 1, LOSSES: 1, LOST: 1 },
  mustEnd: true,
};
const crash: Bounds = {
  what: '2 workers, 2 projects: crash, lost answer of a commit',
  defines: { ...TWO_PROJECTS, CRASHES: 1, LOST: 1 },
  isShort: true,
  mustEnd: true,
};
const unanswered: Bounds = {
  what: '2 workers, 2 projects: lost answer of another statement',
  defines: { ...TWO_PROJECTS, UNANSWERED: 1 },
  mustEnd: true,
};
const failuresAfterCrash: Bounds = {
  what: '2 workers, 1 failure: crash',
  defines: { ...ONE_FAILURE, CRASHES: 1 },
  isShort: true,
  mustEnd: true,
};
const failuresAfterLoss: Bounds = {
  what: '2 workers, 1 failure: lost lease',
  defines: { ...ONE_FAILURE, LOSSES: 1 },
  mustEnd: true,
};
const standby: Bounds = {
  what: '2 workers, 1 project: promoted standby, lost answer of a commit',
  defines: { ...ONE_PROJECT, CHANGES: 3, LOST: 1, REVERTS: 1 },
  isShort: true,
  mustEnd: true,
};
const crashes: Bounds = {
  what: '3 workers, 1 project: two crashes, lost answer of a commit',
  defines: { ...THREE_WORKERS, CRASHES: 2, LOST: 1 },
  mustEnd: true,
};
const LONG: readonly Bounds[] = [
  {
    what: '2 workers, 2 projects: crash, lost lease',
    defines: { ...TWO_PROJECTS, CRASHES: 1, LOSSES: 1 },
  },
  {
    what: '2 workers, 1 failure: crash, lost lease, lost answer of a commit',
    defines: { ...ONE_FAILURE, CRASHES: 1, LOSSES: 1, LOST: 1 },
  },
  {
    what: '2 workers, 1 failure: lost answer of another statement',
    defines: { ...ONE_FAILURE, UNANSWERED: 1, LATE_POSTPONE: undefined },
  },
  {
    what: '2 workers, 1 project: promoted standby, lost lease, lost answer of a commit',
    defines: { ...ONE_PROJECT, CHANGES: 3, LOSSES: 1, LOST: 1, REVERTS: 1 },
  },
];

export const BOUNDS: readonly Bounds[] = [
  commits,
  crash,
  unanswered,
  failuresAfterCrash,
  failuresAfterLoss,
  standby,
  crashes,
  ...LONG,
];

export const MISTAKES: readonly Mistake[] = [
  {
    what: 'a commit is not held to its epoch',
    name: 'NO_EPOCH',
    bounds: commits,
    notice: 'Epoch',
  },
  {
    what: 'a commit is not held to its version',
    name: 'NO_VERSION',
    bounds: standby,
    notice: 'stored[p]!=(seen&1)',
  },
  {
    what: 'a claim keeps the epoch',
    name: 'CLAIM_KEEPS_EPOCH',
    bounds: commits,
    notice: 'untold',
  },
  {
    what: 'a commit with a lost answer is repeated under its epoch',
    name: 'RESOLVE_KEEPS_EPOCH',
    bounds: commits,
    notice: 'untold',
  },
  {
    what: 'a commit with a lost answer keeps its epoch after a standby without the last commit',
    name: 'RESOLVE_KEEPS_REVERTED',
    bounds: standby,
    notice: 'newest[lateProject]<lateSeen',
  },
  {
    what: 'a commit with a lost answer counts as failed',
    name: 'LOST_IS_FAILURE',
    bounds: commits,
    notice: 'untold',
  },
  {
    what: 'a commit with a lost answer counts as made',
    name: 'LOST_IS_SUCCESS',
    bounds: commits,
    notice: 'untold',
  },
  {
    what: 'a transition is emitted before its commit',
    name: 'EMIT_FIRST',
    bounds: commits,
    notice: 'untold',
  },
  {
    what: 'the memory of a listing outlives the ownership',
    name: 'STALE_CACHE',
    bounds: commits,
    notice: 'stored[p]==(world[p]&1)',
  },
  {
    what: 'a project of a dead worker is not free',
    name: 'ORPHANS_STAY',
    bounds: crash,
    notice: '!(dead[owner[p]])',
  },
  {
    what: 'a project that only the database knows as owned is not given back',
    name: 'NO_STRAYS',
    bounds: unanswered,
    notice: 'own[((owner[p]*2)+p)]',
  },
  {
    what: 'a worker counts its lease from the answer',
    name: 'OWN_CLOCK',
    bounds: failuresAfterLoss,
    notice: 'report[0]==p',
  },
  {
    what: 'a failure is settled before its line is written',
    name: 'SETTLE_FIRST',
    bounds: failuresAfterCrash,
    notice: 'lines[p]>0',
  },
  {
    what: 'a settled failure is settled again',
    name: 'SETTLE_AGAIN',
    bounds: failuresAfterCrash,
    notice: 'settlements[p]==1',
  },
  {
    what: 'a failure is handed out without its claim',
    name: 'CLAIM_UNMARKED',
    bounds: failuresAfterCrash,
    notice: 'report[0]==p',
  },
  {
    what: 'a worker reports a failure after the end of its lease',
    name: 'NO_LEASE_CHECK',
    bounds: failuresAfterLoss,
    notice: 'report[0]==p',
  },
  {
    what: 'a worker postpones the failure of another',
    name: 'POSTPONE_OF_OTHERS',
    bounds: failuresAfterLoss,
    notice: 'report[0]==p',
  },
];

/** Texts of the sources that the model represents, by path from src/. If one changes, the model has to change too. */
export const STATEMENTS: readonly (readonly [file: string, text: string])[] = [
  [
    'store/postgres/sql/poll-commit.ts',
    'WHERE id = $1 AND epoch = $2 AND version = $3 AND owner = $15',
  ],
  [
    'store/postgres/sql/poll-commit.ts',
    'WHERE id = $1 AND epoch = $2 AND version <= $3 AND owner = $4 RETURNING epoch',
  ],
  [
    'store/postgres/commits.ts',
    'if (row.is_next === true || row.transition_ids !== null) return succeeded',
  ],
  [
    'store/postgres/ownership/coordinator.ts',
    "UPDATE evalwatch.project SET owner = NULL, epoch = nextval('evalwatch.epoch') WHERE owner = $1",
  ],
  [
    'store/postgres/ownership/coordinator.ts',
    'WHERE (p.owner IS NULL OR p.owner NOT IN (SELECT worker FROM live))',
  ],
  [
    'store/postgres/ownership/coordinator.ts',
    "UPDATE evalwatch.project p SET owner = $1, epoch = nextval('evalwatch.epoch')",
  ],
  [
    'store/postgres/sql/failures.ts',
    '(f.claimed_by IS NULL OR f.claimed_by = $4 OR f.claimed_by NOT IN (SELECT worker FROM live))',
  ],
  [
    'store/postgres/sql/failures.ts',
    'WHERE f.transition_id = $1 AND f.settled_at IS NULL\n    AND t.transition_id = f.transition_id AND t.at = $9',
  ],
  [
    'store/postgres/sql/failures.ts',
    'WHERE f.transition_id = $1 AND f.settled_at IS NULL AND (f.claimed_by IS NULL OR f.claimed_by = $7)',
  ],
  ['monitor/poller.ts', 'if (states.get(project) !== state) return undefined;'],
  ['monitor/failure-reporter.ts', 'if (outcome === undefined || lease() !== heldLease) return;'],
  ['coordination/lease.ts', 'if (termBefore !== term) return undefined;'],
  ['coordination/share.ts', 'of owned.union(leaving)'],
  ['coordination/share.ts', 'if (configured.has(project)) yield'],
];
