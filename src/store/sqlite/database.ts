import type { PruneLimits, Store } from '../../monitor/ports/store.ts';
import { connect, type Connection } from './connection.ts';
import { assertIntact } from './errors.ts';
import { createCauseQuery } from './sql/cause-query.ts';
import { createDurationQuery } from './sql/duration-query.ts';
import { createEventQuery } from './sql/event-query.ts';
import { createFailureCounts } from './sql/failure-counts.ts';
import { createFailures } from './sql/failures.ts';
import { createKnownPages, type KnownPage, type KnownRequest } from './sql/known.ts';
import {
  createListingChanges,
  type ListingChanges,
  type ListingNews,
} from './sql/listing-changes.ts';
import {
  assertOwn,
  BUSY_TIMEOUT_MS,
  createPrivately,
  makeDurable,
  rememberFiles,
  takeLock,
} from './file.ts';
import { migrate, readMigrations } from './sql/migrate.ts';
import { createMoveQuery } from './sql/move-query.ts';
import { createPollCommit } from './sql/poll-commit.ts';
import type { HealthRow, PollPart } from './sql/poll-rows.ts';
import { createProjects } from './sql/projects.ts';
import { createPruning } from './sql/pruning.ts';
import { createRowQueries } from './sql/row-queries.ts';
import { createSnapshotRows, type SnapshotRows } from './sql/snapshot.ts';
import { createTransactions, type Place } from './sql/transactions.ts';

/** A method of the store as its thread has it: synchronous. */
type Immediate<Name extends keyof Store> = (
  ...args: Parameters<Store[Name]>
) => Awaited<ReturnType<Store[Name]>>;

/** Reading methods. They see committed transactions only, also while one is under way. */
export interface Reads {
  readonly projects: Immediate<'projects'>;
  readonly snapshotAfter: SnapshotRows['after'];
  readonly backlog: SnapshotRows['backlog'];
  readonly statuses: Immediate<'statuses'>;
  readonly transitions: Immediate<'transitions'>;
  readonly failures: Immediate<'failures'>;
  readonly events: Immediate<'events'>;
  readonly moves: Immediate<'moves'>;
  readonly failureCounts: Immediate<'failureCounts'>;
  readonly durations: Immediate<'durations'>;
  readonly causes: Immediate<'causes'>;
  readonly loadHealth: Immediate<'loadHealth'>;
  /** Reads a page of known records. */
  readonly known: (project: string, requests: readonly KnownRequest[]) => KnownPage;
  readonly pendingFailures: Immediate<'pendingFailures'>;
  /** @throws {StoreError} `replaced` if the store's files are no longer those that were opened */
  readonly assertInPlace: () => void;
}

/** Writing methods, to be called in a transaction. */
export interface Writes {
  readonly configureProjects: Immediate<'configureProjects'>;
  readonly commitPoll: (part: PollPart) => Awaited<ReturnType<Store['commitPoll']>>;
  /** Writes the health of polls that changed nothing. Skips a project that was deleted. */
  readonly writeHealth: (rows: readonly HealthRow[]) => void;
  readonly settleFailure: Immediate<'settleFailure'>;
  readonly postponeFailure: Immediate<'postponeFailure'>;
  /** Runs one transaction of a pruning step. Returns whether to run this step again or the next one, or to stop. */
  readonly prune: (step: number, limits: PruneLimits) => 'again' | 'next' | 'done';
}

type Signatures<Methods> = { readonly [Name in keyof Methods]: (...args: never[]) => unknown };
type Arguments<Methods extends Signatures<Methods>> = {
  readonly [Name in keyof Methods]: Parameters<Methods[Name]>;
};

/** A call of one of these methods, as a message between threads. */
export type Call<
  Methods extends Signatures<Methods>,
  Name extends keyof Methods = keyof Methods,
> = {
  readonly [Each in Name]: { readonly method: Each; readonly args: Arguments<Methods>[Each] };
}[Name];

export type WriteResult = ReturnType<Writes[keyof Writes]>;

/** What a piece of a transaction has done. */
export interface Written {
  readonly results: readonly WriteResult[];
  /** Empty unless the piece ends the transaction. */
  readonly news: readonly ListingNews[];
}

export interface OpenDatabase {
  readonly sqliteVersion: string;
  /** The listings of all configured projects. */
  readonly news: readonly ListingNews[];
  readonly read: (call: Call<Reads>) => unknown;
  /** Makes these calls in one transaction, or in a piece of one. */
  write(calls: readonly Call<Writes>[], place: Place): Written;
  close(): void;
}

export interface DatabasePaths {
  /** Configured path. A symlink in it can change. */
  readonly path: string;
  /** The real path, which need not exist yet. */
  readonly file: string;
}

/**
 * Opens the store for its one daemon, and creates it if there is none.
 * @param remember records files, and returns the check that they are still the same; replaced in a simulation
 * @throws {StoreError}
 */
export async function openDatabase(
  { path, file }: DatabasePaths,
  remember = rememberFiles,
): Promise<OpenDatabase> {
  const migrations = await readMigrations();
  using opened = new DisposableStack();
  opened.defer(await takeLock(file));
  await createPrivately(file);
  const db = connect(file, { readonly: false, busyTimeoutMs: BUSY_TIMEOUT_MS });
  opened.defer(() => db.close());
  assertOwn(db, file);
  assertIntact(db, file);
  migrate(db, migrations);
  makeDurable(db);
  const reader = connect(file, { readonly: true, busyTimeoutMs: BUSY_TIMEOUT_MS });
  opened.defer(() => reader.close());
  const changes = createListingChanges(db);
  const writes = createWrites(db, changes);
  const rows = createReads(reader);
  // The prepared statements have opened the log.
  const assertInPlace = remember([file, path, `${file}-wal`, `${file}-shm`, `${file}.lock`]);
  const reads = { ...rows, assertInPlace };
  const run = createTransactions(db, assertInPlace);
  for (const project of createProjects(reader).configured()) changes.note(project, 'listings');
  const news = changes.read();
  changes.clear();
  const held = opened.move();
  return {
    sqliteVersion: String(db.prepare('SELECT sqlite_version()').pluck().get()),
    news,
    read: (call) => makeCall(reads, call),
    write: (calls, place) => {
      try {
        const written = run(place, () => {
          const results = calls.map((call) => makeCall(writes, call));
          return { results, news: place.ends ? changes.read() : [] };
        });
        if (place.ends) changes.clear();
        return written;
      } catch (error) {
        changes.clear();
        throw error;
      }
    },
    close: () => {
      reader.close();
      checkpoint(db);
      held.dispose();
    },
  };
}

function makeCall<Methods extends Signatures<Methods>, Name extends keyof Methods>(
  methods: {
    readonly [Each in keyof Methods]: (
      ...args: Arguments<Methods>[Each]
    ) => ReturnType<Methods[Each]>;
  },
  { method, args }: Call<Methods, Name>,
): ReturnType<Methods[Name]> {
  return methods[method](...args);
}

function createReads(db: Connection): Omit<Reads, 'assertInPlace'> {
  const projects = createProjects(db);
  const failures = createFailures(db);
  const snapshot = createSnapshotRows(db);
  return {
    ...createRowQueries(db),
    snapshotAfter: snapshot.after,
    backlog: snapshot.backlog,
    events: createEventQuery(db),
    moves: createMoveQuery(db),
    failureCounts: createFailureCounts(db),
    durations: createDurationQuery(db),
    causes: createCauseQuery(db),
    loadHealth: projects.health,
    known: createKnownPages(db),
    pendingFailures: failures.pending,
  };
}

function createWrites(db: Connection, changes: ListingChanges): Writes {
  const projects = createProjects(db);
  const polls = createPollCommit(db);
  const failures = createFailures(db);
  const pruning = createPruning(db, (project) => changes.note(project, 'errors'));
  return {
    configureProjects: (ids, at) => {
      // A project that is removed, pruned and configured again is a new one.
      for (const id of projects.configure(ids, at)) changes.note(id, 'listings');
    },
    commitPoll: (part) => {
      if (part.listings.length > 0) changes.note(part.project, 'listings');
      return polls.commit(part);
    },
    writeHealth: polls.writeHealth,
    settleFailure: (...settled) => {
      const project = failures.settle(...settled);
      if (project !== undefined) changes.note(project, 'errors');
    },
    postponeFailure: failures.postpone,
    prune: (step, limits) => {
      const found = pruning[step]?.run(limits);
      if (found === undefined) return 'done';
      return found ? 'again' : 'next';
    },
  };
}

function checkpoint(db: Connection): void {
  try {
    db.pragma('wal_checkpoint(TRUNCATE)');
  } catch {
    // The log stays, and the next process that opens the store reads it.
  }
}
