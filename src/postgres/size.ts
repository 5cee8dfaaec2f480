import type { Statement } from './database.ts';

/** What all tables of the store take, with their indexes. */
export const SIZE: Statement = {
  name: 'store_size',
  text: `SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint AS bytes,
      split_part(current_setting('server_version'), ' ', 1) AS server_version
    FROM pg_class WHERE relnamespace = 'evalwatch'::regnamespace AND relkind = 'r'`,
};

export interface SizeRow {
  readonly bytes: number;
  readonly server_version: string;
}
