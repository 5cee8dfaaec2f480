/** Work split into steps of a few milliseconds. The caller decides what happens between two steps. */
export type Steps<Result> = Generator<undefined, Result, undefined>;

/** Number of items that a loop handles in one step. */
export const ITEMS_PER_STEP = 8192;
