/** Steps of a poll and of a failure's report, in order; a process can be made to end itself at each. */
export const STEPS = [
  'fetch: before',
  'fetch: sent',
  'fetch: answered',
  'fetch: after',
  'begin: before',
  'begin: after',
  'commit: before',
  'commit: after',
  'emit',
  'line: before',
  'line: half',
  'line: after',
  'failure line: before',
  'failure line: half',
  'failure line: after',
  'settle: before',
  'settle: after',
  'settle: committed',
] as const;
export type Step = (typeof STEPS)[number];

/** System calls of the store and the log lines, each with the highest call number at which a process is killed. */
export const CALLS = { pwrite64: 200, fsync: 30, write: 60, fcntl: 200 } as const;
export type Call = keyof typeof CALLS;
