import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SOURCE } from '../../proof/row.ts';

/** Environment variable with the entry point of the bundle (bundle.ts). The global setup of the tests sets it. */
export const BUNDLED_ENTRY = 'EVALWATCH_BUNDLED_ENTRY';

/** Entry point of the sources. From start to stop, a daemon takes 0.96 s of CPU time from there and 0.69 s from the bundle. */
export const SOURCE_ENTRY = fileURLToPath(new URL('../../src/main.js', import.meta.url));

/** Entry point of the processes that tests start. */
export const ENTRY = process.env[BUNDLED_ENTRY] ?? SOURCE_ENTRY;

/** Returns the entry point of the program with its sources in this directory. */
export function entryOf(source: string): string {
  return source === SOURCE ? ENTRY : join(source, 'main.js');
}
