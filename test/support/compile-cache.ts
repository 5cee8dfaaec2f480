import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Environment of the processes that tests start: compiling is half of what a start costs, so it is done once for all. */
export const COMPILE_CACHE = {
  NODE_COMPILE_CACHE:
    process.env['NODE_COMPILE_CACHE'] ?? join(tmpdir(), 'evalwatch-compile-cache'),
};
