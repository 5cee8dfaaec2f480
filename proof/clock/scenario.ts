/** Schedules, and steps of time for a scheduler. Times are ms. */
export interface Scenario {
  readonly name: string;
  /** Wall clock at the beginning. */
  readonly start: number;
  readonly schedules: readonly {
    readonly id: string;
    readonly schedule: string;
    readonly timezone: string;
  }[];
  readonly steps: readonly (
    { readonly pass: number } | { readonly jump: number } | { readonly stop: number }
  )[];
}

export interface Outcome {
  /** In order; `at` is monotonic, `dueAt` and `nextAt` are wall time. */
  readonly starts: readonly {
    readonly id: string;
    readonly at: number;
    readonly dueAt: number;
    readonly nextAt: number;
    /** Delay of the start as the metric reports it, ms. */
    readonly lag: number;
  }[];
  readonly missed: Readonly<Record<string, number>>;
  readonly overlapped: number;
  /** Monotonic time after each step. */
  readonly marks: readonly number[];
}
