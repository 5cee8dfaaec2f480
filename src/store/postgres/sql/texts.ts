import { createDb, type Db, forPostgres, type Write } from '../../sql.ts';
import type { Database } from '../database.ts';

/** Creates the reader of the texts for both engines. */
export function createPostgresDb(query: Database['query']): Db {
  return createDb((name, asked, parameters) => {
    const { text, values } = forPostgres(asked, parameters);
    return query({ text, ...(name !== '' && { name }) }, values);
  });
}

/** Creates the function that makes changes for both engines, each as one statement. */
export function createPostgresWrite(query: Database['query']): Write {
  return ({ name, first = {}, last }, parameters) => {
    const parts = Object.entries(first).map(([each, part]) => `${each} AS (${part})`);
    const whole = parts.length === 0 ? last : `WITH ${parts.join(',\n')}\n${last}`;
    const { text, values } = forPostgres(whole, parameters);
    return query({ name, text }, values);
  };
}
