/** What befalls a scheduler. Times are ms. */
export interface Scenario {
  readonly name: string;
  /** The wall clock in the beginning. */
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

/** What a scheduler did with it. */
export interface Outcome {
  /** In their order; `at` is monotonic, the others wall time. */
  readonly starts: readonly {
    readonly id: string;
    readonly at: number;
    readonly dueAt: number;
    readonly nextAt: number;
    /** How late, ms, as the metric has it. */
    readonly lag: number;
  }[];
  readonly missed: Readonly<Record<string, number>>;
  readonly overlapped: number;
  /** Monotonic time after each step. */
  readonly marks: readonly number[];
}
