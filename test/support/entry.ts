import { join } from 'node:path';
import { SOURCE } from '../../proof/row.ts';

/** Environment variable with the entry point of the bundle (bundle.ts). The global setup of the tests sets it. */
export const BUNDLED_ENTRY = 'EVALWATCH_BUNDLED_ENTRY';

/** Entry point of the sources, which take more CPU time to start than the bundle. */
export const SOURCE_ENTRY = join(SOURCE, 'main.js');

/** Entry point of the processes that tests start. */
export const ENTRY = process.env[BUNDLED_ENTRY] ?? SOURCE_ENTRY;

/** Returns the entry point of the program with its sources in this directory. */
export function entryOf(source: string): string {
  return source === SOURCE ? ENTRY : join(source, 'main.js');
}
