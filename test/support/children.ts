import type { ChildProcess } from 'node:child_process';

/** Running processes that tests of this process have started. */
export const children = new Set<ChildProcess>();
