/** Work in steps of some milliseconds: whoever takes them decides what happens in between. */
export type Steps<Result> = Generator<undefined, Result, undefined>;

/** Loops over as many items as fit into one step. */
export const ITEMS_PER_STEP = 8192;

/** Takes all steps at once. */
export function takeAtOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
