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
  // Sorting must not need a writable directory for temporary files.
  db.pragma('temp_store = MEMORY');
  return db;
}
