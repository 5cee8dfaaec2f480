export interface RowOptions {
  /** Few enough rounds for `npm test`. */
  readonly short: boolean;
  /** The same seed makes the same faults. */
  readonly seed: number;
  /** Says how far it is, for people. */
  readonly print: (line: string) => void;
}

/** What a row went through and saw. */
export type Figures = readonly (readonly [figure: string, value: string])[];

/** One kind of fault, what is done to prove that it does no harm, and the proof. */
export interface Row {
  /** As `scripts/proof.ts` is asked for it. */
  readonly name: string;
  /** Rejects when a promise is broken. */
  run(options: RowOptions): Promise<Figures>;
}
