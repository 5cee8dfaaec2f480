import { statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { StoreError } from '../../monitor/errors.ts';
import type { Parameters as Values } from '../sql.ts';
import { connect, type Connection } from './connection.ts';
import { assertIntact } from './errors.ts';
import {
  assertOwn,
  BUSY_TIMEOUT_MS,
  createPrivately,
  makeDurable,
  rememberFiles,
  takeLock,
} from './file.ts';
import { createChanges, type MakeChange } from './sql/changes.ts';
import { createKnown, type ReadKnown } from './sql/known.ts';
import { migrate, readMigrations, SCHEMA_VERSION, schemaVersion } from './sql/migrate.ts';
import { type CommittedPart, createPollCommit } from './sql/poll-commit.ts';
import type { PollPart } from './sql/poll-rows.ts';
import { createSelect } from './sql/reads.ts';
import { createTransactions, type Place } from './sql/transactions.ts';

/** Reading methods. They see committed transactions only, also while one is under way. */
export interface Reads {
  /** Answers a text for both engines (`Db.read`). */
  readonly select: (text: string, parameters: Values) => readonly unknown[];
  readonly known: ReadKnown;
  /** @throws {StoreError} `replaced` if the store's files are no longer those that were opened */
  readonly assertInPlace: () => void;
}

/** Writing methods, to be called in a transaction. */
export interface Writes {
  readonly commitPoll: (part: PollPart) => CommittedPart | undefined;
  readonly change: MakeChange;
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

export interface OpenDatabase {
  readonly sqliteVersion: string;
  readonly read: (call: Call<Reads>) => unknown;
  /** Makes these calls in one transaction, or in a piece of one. */
  write(calls: readonly Call<Writes>[], place: Place): readonly WriteResult[];
  close(): void;
}

export interface DatabasePaths {
  /** Configured path. A symlink in it can change. */
  readonly path: string;
  /** The real path, which need not exist yet. */
  readonly file: string;
}

/** An upgrade of the store to the schema version of this program. */
export interface Upgrade {
  readonly from: number;
  readonly to: number;
  /** Size of the store. */
  readonly bytes: number;
}

interface OpenOptions {
  /** Called before an upgrade. */
  readonly onUpgrade?: (upgrade: Upgrade) => void;
  /** Records files, and returns the check that they are still the same; replaced in a simulation. */
  readonly remember?: typeof rememberFiles;
  /** Number of bytes that can be written beside a file. */
  readonly freeBytes?: (file: string) => number;
}

/**
 * Opens the store for its one daemon, and creates it if there is none.
 * @throws {StoreError}
 */
export async function openDatabase(
  { path, file }: DatabasePaths,
  { onUpgrade, remember = rememberFiles, freeBytes = freeBytesAt }: OpenOptions = {},
): Promise<OpenDatabase> {
  const migrations = await readMigrations();
  using opened = new DisposableStack();
  opened.defer(await takeLock(file));
  await createPrivately(file);
  const db = connect(file, { readonly: false, busyTimeoutMs: BUSY_TIMEOUT_MS });
  opened.defer(() => db.close());
  assertOwn(db, file);
  assertIntact(db, file);
  const from = schemaVersion(db);
  if (from > 0 && from < SCHEMA_VERSION) {
    const bytes = statSync(file).size;
    assertRoom(file, bytes, freeBytes(file));
    onUpgrade?.({ from, to: SCHEMA_VERSION, bytes });
  }
  migrate(db, migrations);
  makeDurable(db);
  const reader = connect(file, { readonly: true, busyTimeoutMs: BUSY_TIMEOUT_MS });
  opened.defer(() => reader.close());
  const writes = { commitPoll: createPollCommit(db), change: createChanges(db) };
  const rows = { select: createSelect(reader), known: createKnown(reader) };
  // The prepared statements have opened the log.
  const assertInPlace = remember([file, path, `${file}-wal`, `${file}-shm`, `${file}.lock`]);
  const reads = { ...rows, assertInPlace };
  const run = createTransactions(db, assertInPlace);
  const held = opened.move();
  return {
    sqliteVersion: String(db.prepare('SELECT sqlite_version()').pluck().get()),
    read: (call) => makeCall(reads, call),
    write: (calls, place) => run(place, () => calls.map((call) => makeCall(writes, call))),
    close: () => {
      reader.close();
      checkpoint(db);
      held.dispose();
    },
  };
}

function freeBytesAt(file: string): number {
  const { bavail, bsize } = statfsSync(dirname(file));
  return bavail * bsize;
}

const MIB = 1024 * 1024;

/** Checks that copies of all tables fit into the log, and then into the file. @throws {StoreError} */
function assertRoom(file: string, bytes: number, free: number): void {
  const needed = 2 * bytes;
  if (free >= needed) return;
  throw new StoreError(
    'full',
    `the upgrade of ${file} needs ${Math.ceil(needed / MIB)} MiB of free space, and ${Math.floor(free / MIB)} MiB are free: make room, or move the store to a larger disk. Nothing was changed`,
  );
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

function checkpoint(db: Connection): void {
  try {
    db.pragma('wal_checkpoint(TRUNCATE)');
  } catch {
    // The log stays, and the next process that opens the store reads it.
  }
}
