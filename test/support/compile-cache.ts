import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Environment of the processes that tests start. They share a cache, because compiling is half of the cost of a start. */
export const COMPILE_CACHE = {
  NODE_COMPILE_CACHE:
    process.env['NODE_COMPILE_CACHE'] ?? join(tmpdir(), 'evalwatch-compile-cache'),
};
