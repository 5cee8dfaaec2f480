/** What a poll and a failure's report go through, in order; at each a process can be told to end itself. */
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

/** System calls with which the store and the lines leave the process, and how many of them are worth a kill. */
export const CALLS = { pwrite64: 200, fsync: 30, write: 60, fcntl: 200 } as const;
export type Call = keyof typeof CALLS;
