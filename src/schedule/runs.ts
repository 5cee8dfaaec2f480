/** Runs of a schedule on the time line. Times are epoch ms. */
export interface Runs {
  /** The first run after this moment, on a whole second. */
  readonly nextAfter: (ms: number) => number;
  /** The last run in (after, until], if there is one. */
  readonly lastBetween: (after: number, until: number) => number | undefined;
}
