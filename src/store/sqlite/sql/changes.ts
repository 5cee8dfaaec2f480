import { type Change, forSqlite, type Parameters } from '../../sql.ts';
import type { Connection } from '../connection.ts';

/** Makes a change for both engines (`Write`), in a transaction. */
export type MakeChange = (change: Change, parameters: Parameters) => readonly unknown[];

/**
 * Creates the function that makes changes. What a statement returns is a table for those after it: the rows as JSON in a
 * parameter.
 */
export function createChanges(db: Connection): MakeChange {
  const prepare = createPrepare(db);
  return ({ first = {}, last }, parameters) => {
    const values = bindable(parameters);
    const tables: string[] = [];
    const run = (text: string) => {
      const before = tables.length === 0 ? '' : `WITH ${tables.join(', ')} `;
      const statement = prepare(before + text);
      if (statement.reader) return { statement, rows: statement.all(values) };
      statement.run(values);
      return undefined;
    };
    for (const [name, text] of Object.entries(first)) {
      const returned = run(text);
      if (returned === undefined) continue;
      const columns = returned.statement.columns().map((column) => column.name);
      const fields = columns.map((column) => `value ->> '${column}'`);
      tables.push(
        `${name} (${columns.join(', ')}) AS (SELECT ${fields.join(', ')} FROM json_each(:${name}))`,
      );
      values[name] = JSON.stringify(returned.rows);
    }
    return run(last)?.rows ?? [];
  };
}

/** Creates the function that prepares texts for both engines, each once: they come from few functions of the program. */
export function createPrepare(db: Connection): (text: string) => ReturnType<Connection['prepare']> {
  const statements = new Map<string, ReturnType<Connection['prepare']>>();
  return (text) => {
    let statement = statements.get(text);
    if (statement === undefined) {
      statements.set(text, (statement = db.prepare(forSqlite(text))));
    }
    return statement;
  };
}

/** Returns the values of parameters as SQLite takes them. */
export function bindable(parameters: Parameters): Record<string, string | number | null> {
  return Object.fromEntries(
    Object.entries(parameters).map(([name, value]) => [name, value ?? null]),
  );
}
