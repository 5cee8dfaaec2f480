import type { EventPosition } from '../monitor/ports/store.ts';

/** The tables of a store in the order in which they can be filled, with their keys. Both engines have the same columns. */
export const TABLES = {
  project: 'project_key',
  label: 'label_id',
  record: 'project_key, kind, id',
  experiment: 'project_key, label_id',
  finish: 'finish_id',
  transition: 'transition_id',
  failure: 'transition_id',
  settlement: 'settlement_id',
  prompt_duration: 'project_key, status, day, bucket',
  error_total: 'project_key, label',
  receiver: 'receiver, kind',
  told: 'project_key, receiver, kind, record_id',
  message: 'message_id',
} as const;

export type Table = keyof typeof TABLES;

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the object has only these keys
export const TABLE_NAMES = Object.keys(TABLES) as readonly Table[];

/** Values by column; booleans are 0 or 1. */
export type Row = Readonly<Record<string, string | number | null>>;

/** Content of a store that no daemon can change meanwhile. */
export interface StoreContents {
  /** Reads a table in the order of its key. Read it to its end before the next one. @throws {StoreError} */
  rows(table: Table): Iterable<Row>;
  /** The last numbers given to rows, also to those that were deleted. */
  readonly numbers: EventPosition;
  close(): void;
}
