import type { Row } from './row.ts';

/** Every row of docs/reliability.md. */
export const ROWS: readonly Row[] = [];
