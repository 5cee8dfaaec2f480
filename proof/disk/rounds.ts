export const ROUNDS = 10;
const PROMPTS = 60;
const STATUSES = ['PENDING', 'RUNNING', 'COMPLETED', 'FAILED'] as const;

/** Returns the statuses of a round: enough for commits of several pages. */
export function statusesIn(round: number): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Array.from({ length: PROMPTS }, (_, n) => [`prompt-${n}`, STATUSES[(round * n) % 4] ?? '']),
  );
}

export interface WorkloadReport {
  /** Whether the store opened, after retries if need be; if not, nothing else was done. */
  readonly opened: boolean;
  /** Messages of the calls that failed. */
  readonly failed: readonly string[];
  /** Number of them between opening and prune. */
  readonly commits: number;
  /** Number of commit failures that the store emitted. */
  readonly counted: number;
}
