import { fileURLToPath } from 'node:url';

/** Of the product itself. */
export const SOURCE = fileURLToPath(new URL('../src/', import.meta.url));

export interface RowOptions {
  /** Few rounds. */
  readonly short: boolean;
  /** The same seed makes the same faults. */
  readonly seed: number;
  /** Says how far it is, for people. */
  readonly print: (line: string) => void;
  /** The directory of the sources that are put to the test; by default {@link SOURCE}. */
  readonly source?: string;
  /** The one part of the row that runs, for a mistake that this part notices; absent: all of it. */
  readonly part?: string;
}

/** A deliberate mistake: some text of a file, by its path from src/, and what takes its place. */
export interface Bug {
  readonly what: string;
  readonly file: string;
  readonly replace: readonly (readonly [text: string, by: string])[];
  /** What a row that notices it says; anything if this is absent. */
  readonly notice?: RegExp;
  /** The part of the row that notices it; the others do not run then. */
  readonly part?: string;
}

/** What a row went through and saw. */
export type Figures = readonly (readonly [figure: string, value: string])[];

/** One kind of fault, what is done to prove that it does no harm, and the proof. */
export interface Row {
  /** As `scripts/proof.ts` is asked for it. */
  readonly name: string;
  /** Without `--seed` it gets another seed each time. */
  readonly drawsSeed?: boolean;
  /** Rejects when a promise is broken. */
  run(options: RowOptions): Promise<Figures>;
  /** Mistakes in the sources each of which the row, in its short form, has to notice. */
  readonly bug?: Bug | readonly Bug[];
}
