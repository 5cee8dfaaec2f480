import { fileURLToPath } from 'node:url';

const ENTRY = fileURLToPath(new URL('../../src/main.js', import.meta.url));
/** What a statement throws, as JavaScript. */
const ERRORS = {
  'I/O error': "new Database.SqliteError('disk I/O error', 'SQLITE_IOERR_READ')",
  bug: "new TypeError('a bug in the store')",
};

/**
 * Arguments of Node for a daemon in which statements of SQLite that begin like this (a regular expression) fail while
 * there is a file `flag`.
 */
export function brokenSqlite(
  flag: string,
  statements: RegExp,
  error: keyof typeof ERRORS,
): readonly string[] {
  const code = `
    import { existsSync } from 'node:fs';
    import { createRequire } from 'node:module';
    const Database = createRequire(${JSON.stringify(ENTRY)})('better-sqlite3');
    const { prepare } = Database.prototype;
    Database.prototype.prepare = function (sql) {
      const statement = prepare.call(this, sql);
      if (!${String(statements)}.test(sql)) return statement;
      for (const method of ['get', 'all', 'run']) {
        const original = statement[method];
        statement[method] = (...values) => {
          if (existsSync(${JSON.stringify(flag)})) throw ${ERRORS[error]};
          return original.apply(statement, values);
        };
      }
      return statement;
    };`;
  return ['--import', `data:text/javascript,${encodeURIComponent(code)}`, ENTRY];
}
