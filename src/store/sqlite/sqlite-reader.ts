import { readFileSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import Database from 'better-sqlite3';
import { StoreError } from '../../monitor/errors.ts';
import type { StoreReader } from '../../monitor/ports/store.ts';
import { createDb } from '../sql.ts';
import { connect, distrust, type Connection } from './connection.ts';
import { isSqliteError, isSystemError, withStoreErrors } from './errors.ts';
import { assertOwn, fileSize, inspectStoreFile, rememberFiles } from './file.ts';
import { assertNotOlder, schemaVersion } from './sql/migrate.ts';
import { createSelect, SqliteReads } from './sql/reads.ts';

/** Time for which SQLite waits for another process, ms. Longer than a daemon waits: a closing daemon locks the store. */
const BUSY_TIMEOUT_MS = 5000;

/**
 * Opens the store for reading, beside a daemon or without one. Never changes the file.
 * @throws {StoreError} also if there is no store yet, or its schema version is another
 */
export async function openReader({ path }: { readonly path: string }): Promise<StoreReader> {
  using opened = new DisposableStack();
  const readable = await openReadable(path);
  opened.defer(readable.close);
  // Preparing the statements fails if the store is damaged.
  const reader = await withStoreErrors(path, () => new SqliteReader(path, readable));
  opened.move();
  return reader;
}

/** Reads a store beside its daemon or without one. */
class SqliteReader extends SqliteReads implements StoreReader {
  readonly #path: string;
  readonly #readable: Readable;

  constructor(path: string, readable: Readable) {
    const select = createSelect(readable.db);
    super(createDb((_, text, parameters) => this.#read(() => select(text, parameters))));
    this.#path = path;
    this.#readable = readable;
  }

  async close(): Promise<void> {
    await withStoreErrors(this.#path, () => this.#readable.close());
  }

  async #read<Result>(work: () => Result): Promise<Result> {
    const { db, assertInPlace } = this.#readable;
    return await withStoreErrors(this.#path, () => {
      if (!db.open) throw new StoreError('other', `the store is closed (${this.#path})`);
      // Otherwise a command that reads repeatedly would go on showing a store that was replaced.
      assertInPlace();
      return work();
    });
  }
}

/** A connection that only reads a store, for commands that need more than rows. */
interface Readable {
  readonly db: Connection;
  /** @throws {StoreError} `replaced` if the path now leads to another file, or to none */
  readonly assertInPlace: () => void;
  readonly close: () => void;
}

/** Opens a store of this schema version, or also of an earlier one. @throws {StoreError} */
export async function openReadable(
  path: string,
  versions: 'current' | 'earlier too' = 'current',
): Promise<Readable> {
  return await withStoreErrors(path, async () => {
    const file = await findStore(path);
    using opened = new DisposableStack();
    const db = await connectReadable(file);
    opened.defer(() => db.close());
    assertOwn(db, path);
    if (versions === 'current') assertNotOlder(schemaVersion(db), path);
    const held = opened.move();
    return { db, assertInPlace: rememberFiles([path]), close: () => held.dispose() };
  });
}

/** Returns the real path of a store. @throws {StoreError} if there is none, or the file is something else */
export async function findStore(path: string): Promise<string> {
  try {
    const file = await realpath(path);
    if ((await inspectStoreFile(file)) === 'store') return file;
  } catch (error) {
    if (!isSystemError(error, 'ENOENT')) throw error;
  }
  throw new StoreError(
    'other',
    `there is no store at ${path}: the daemon creates it at its first start`,
  );
}

/** Largest file that Node reads as a whole. */
const MAX_COPY_BYTES = 2 ** 31 - 1;

/** SQLite needs -wal and -shm files beside a store. Where it cannot create them, a copy in memory needs none. */
async function connectReadable(file: string): Promise<Connection> {
  const db = connect(file, { readonly: true, busyTimeoutMs: BUSY_TIMEOUT_MS });
  try {
    schemaVersion(db);
    return db;
  } catch (error) {
    db.close();
    const unable =
      isSqliteError(error, 'SQLITE_CANTOPEN') || isSqliteError(error, 'SQLITE_READONLY');
    if (!unable) throw error;
    const hasCommits = (await fileSize(`${file}-wal`)) > 0;
    if (!hasCommits && (await fileSize(file)) <= MAX_COPY_BYTES) return copyIntoMemory(file);
    throw new StoreError(
      'io',
      `${file} has ${hasCommits ? `commits in ${file}-wal` : 'more than 2 GiB'}, so SQLite reads it only where it can write: ` +
        `run the command as a user who can write in that directory, or copy ${hasCommits ? 'both files' : 'it'} to another one and read the copy`,
      error,
    );
  }
}

function copyIntoMemory(file: string): Connection {
  const image = readFileSync(file);
  // These two bytes say whether the store has a write-ahead log.
  image.fill(1, 18, 20);
  return distrust(new Database(image, { readonly: true }));
}
