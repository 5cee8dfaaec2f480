import type { Statement } from '../database.ts';

/** Selects the size of all tables with their indexes, and whether the server has analysed the largest one. */
export const SIZE: Statement = {
  text: `SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint AS bytes,
      bool_or(relname = 'record' AND reltuples >= 0) AS is_counted,
      split_part(current_setting('server_version'), ' ', 1) AS server_version
    FROM pg_class WHERE relnamespace = 'evalwatch'::regnamespace AND relkind = 'r'`,
};

export interface SizeRow {
  readonly bytes: number;
  readonly is_counted: boolean;
  readonly server_version: string;
}
