import { forSqlite, type Parameters } from '../../sql.ts';
import type { Connection } from '../connection.ts';

/** Creates the function that answers the texts for both engines (`Db.read`). */
export function createSelect(
  db: Connection,
): (text: string, parameters: Parameters) => readonly unknown[] {
  // Texts come from few functions of the program.
  const statements = new Map<string, ReturnType<Connection['prepare']>>();
  return (text, parameters) => {
    let statement = statements.get(text);
    if (statement === undefined) {
      statements.set(text, (statement = db.prepare(forSqlite(text))));
    }
    const values = Object.entries(parameters).map(([name, value]) => [name, value ?? null]);
    return statement.all(Object.fromEntries(values));
  };
}
