/** The tables of a store in the order in which they can be filled, with their keys. Both engines have the same columns. */
export const TABLES = {
  project: 'project_key',
  record: 'project_key, kind, id',
  transition: 'transition_id',
  failure: 'transition_id',
  settlement: 'settlement_id',
  prompt_duration: 'project_key, status, day, bucket',
  error_total: 'project_key, label',
} as const;

export type Table = keyof typeof TABLES;

export const TABLE_NAMES: readonly Table[] = [
  'project',
  'record',
  'transition',
  'failure',
  'settlement',
  'prompt_duration',
  'error_total',
];

/** Values by column; booleans are 0 or 1. */
export type Row = Readonly<Record<string, string | number | null>>;

/** Content of a store that no daemon can change meanwhile. */
export interface StoreContents {
  /** Reads a table in the order of its key. Read it to its end before the next one. @throws {StoreError} */
  rows(table: Table): Iterable<Row>;
  /** Returns the last number given to a row of this table, also if the row was deleted. */
  lastNumber(table: 'transition' | 'settlement'): number;
  close(): void;
}
