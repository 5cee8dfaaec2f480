export const ROUNDS = 10;
const PROMPTS = 60;
const STATUSES = ['PENDING', 'RUNNING', 'COMPLETED', 'FAILED'] as const;

/** The prompts that the workload sees in a round: enough for commits of several pages. */
export function statusesIn(round: number): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Array.from({ length: PROMPTS }, (_, n) => [`prompt-${n}`, STATUSES[(round * n) % 4] ?? '']),
  );
}

export interface WorkloadReport {
  /** False if the store did not open, however often it was tried: then nothing else was done. */
  readonly opened: boolean;
  /** Messages of the calls that failed. */
  readonly failed: readonly string[];
  /** So many of them after the store was open. */
  readonly commits: number;
  /** Commit failures that the store told of. */
  readonly counted: number;
}
