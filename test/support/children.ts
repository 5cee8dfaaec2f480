import type { ChildProcess } from 'node:child_process';

/** Processes that tests of this process have started, and that have not ended. */
export const children = new Set<ChildProcess>();
