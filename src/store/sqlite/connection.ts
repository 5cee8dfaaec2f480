import Database from 'better-sqlite3';

export type Connection = Database.Database;

/** Opens an SQLite file that exists. */
export function connect(
  path: string,
  options: { readonly readonly: boolean; readonly busyTimeoutMs: number },
): Connection {
  const db = new Database(path, {
    readonly: options.readonly,
    fileMustExist: true,
    timeout: options.busyTimeoutMs,
  });
  // Sorting then needs no writable directory for temporary files.
  db.pragma('temp_store = MEMORY');
  return distrust(db);
}

/**
 * Makes SQLite distrust the content of the file, which another program may have written: the schema can call no function with
 * side effects, and each page is checked before use. The driver itself lets no SQL write to the schema or the log
 * ("defensive").
 */
export function distrust(db: Connection): Connection {
  db.pragma('trusted_schema = OFF');
  db.pragma('cell_size_check = ON');
  return db;
}
