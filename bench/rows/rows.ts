import { memory } from './memory.ts';
import { POLL_ROWS } from './polls.ts';
import type { Row } from './row.ts';
import { SCRAPE_ROWS } from './scrapes.ts';
import { start } from './start.ts';

/** Every row of docs/performance.md. */
export const ROWS: readonly Row[] = [...POLL_ROWS, ...SCRAPE_ROWS, memory, start];
