import {
  type Change,
  createDb,
  type Db,
  forPostgres,
  type Parameters,
  type Write,
} from '../../sql.ts';
import type { Database, Statement } from '../database.ts';

/** Creates the reader of the texts for both engines. */
export function createPostgresDb(query: Database['query']): Db {
  return createDb((name, asked, parameters) => {
    const { text, values } = forPostgres(asked, parameters);
    return query({ text, ...(name !== '' && { name }) }, values);
  });
}

/** Creates the function that makes changes for both engines, each as one statement. */
export function createPostgresWrite(query: Database['query']): Write {
  return (...asked) => {
    const { statement, values } = toStatement(...asked);
    return query(statement, values);
  };
}

/** Returns the one statement that makes a change, and its values. */
export function toStatement(
  { name, first = {}, last }: Change,
  parameters: Parameters,
): { readonly statement: Statement; readonly values: readonly unknown[] } {
  const parts = Object.entries(first).map(([each, part]) => `${each} AS (${part})`);
  const whole = parts.length === 0 ? last : `WITH ${parts.join(',\n')}\n${last}`;
  const { text, values } = forPostgres(whole, parameters);
  return { statement: { name, text }, values };
}
