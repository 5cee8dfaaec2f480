import { ENTRY } from './entry.ts';

/** JavaScript that runs before a statement. `hang` creates the file `<flag>.hangs`, then blocks while the flag exists. */
const TROUBLES = {
  'I/O error': "throw new Database.SqliteError('disk I/O error', 'SQLITE_IOERR_READ')",
  bug: "throw new TypeError('a bug in the store')",
  hang: `writeFileSync(flag + '.hangs', '');
         while (existsSync(flag)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)`,
};

/** Returns Node arguments for a daemon whose matching SQLite statements have this trouble while the file `flag` exists. */
export function brokenSqlite(
  flag: string,
  statements: RegExp,
  trouble: keyof typeof TROUBLES,
): readonly string[] {
  const code = `
    import { existsSync, writeFileSync } from 'node:fs';
    import { createRequire } from 'node:module';
    const Database = createRequire(${JSON.stringify(ENTRY)})('better-sqlite3');
    const flag = ${JSON.stringify(flag)};
    const { prepare } = Database.prototype;
    Database.prototype.prepare = function (sql) {
      const statement = prepare.call(this, sql);
      if (!${String(statements)}.test(sql)) return statement;
      for (const method of ['get', 'all', 'run']) {
        const original = statement[method];
        statement[method] = (...values) => {
          if (existsSync(flag)) { ${TROUBLES[trouble]}; }
          return original.apply(statement, values);
        };
      }
      return statement;
    };`;
  return ['--import', `data:text/javascript,${encodeURIComponent(code)}`, ENTRY];
}
