import Database from 'better-sqlite3';

export type Connection = Database.Database;

const connections = new Set<Connection>();

/** Opens an SQLite file that exists. It has to be closed with {@link disconnect}. */
export function connect(
  path: string,
  options: { readonly readonly: boolean; readonly busyTimeoutMs: number },
): Connection {
  const db = new Database(path, {
    readonly: options.readonly,
    fileMustExist: true,
    timeout: options.busyTimeoutMs,
  });
  connections.add(db);
  // Sorting must not need a writable directory for temporary files.
  db.pragma('temp_store = MEMORY');
  return db;
}

export function disconnect(db: Connection): void {
  db.close();
  connections.delete(db);
}

/** Whether this process has the file open; `path` is its real path. */
export function isOpenHere(path: string): boolean {
  return connections.values().some((db) => db.name === path);
}

/** Of the SQLite that is built in, such as `3.54.0`. */
export function sqliteVersion(): string {
  const db = new Database(':memory:');
  try {
    return String(db.prepare('SELECT sqlite_version()').pluck().get());
  } finally {
    db.close();
  }
}
