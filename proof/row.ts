import { fileURLToPath } from 'node:url';

/** Sources of the product itself. */
export const SOURCE = fileURLToPath(new URL('../src/', import.meta.url));

export interface RowOptions {
  /** Whether to run few rounds. */
  readonly short: boolean;
  /** The same seed makes the same faults. */
  readonly seed: number;
  /** Prints progress for people. */
  readonly print: (line: string) => void;
  /** Directory of the sources under test. Default {@link SOURCE}. */
  readonly source?: string;
  /** The only part of the row that runs, for a mistake that it notices. Default: all parts. */
  readonly part?: string;
}

/** A deliberate mistake: replacements of text in a file, by its path from src/. */
export interface Bug {
  readonly what: string;
  readonly file: string;
  readonly replace: readonly (readonly [text: string, by: string])[];
  /** Message of a row that notices it; any message if absent. */
  readonly notice?: RegExp;
  /** The part of the row that notices it; the others do not run then. */
  readonly part?: string;
}

export type Figures = readonly (readonly [figure: string, value: string])[];

/** One kind of fault, and the proof that it does no harm. */
export interface Row {
  /** Name in the arguments of `scripts/proof.ts`. */
  readonly name: string;
  /** Whether it gets another seed each time without `--seed`. */
  readonly drawsSeed?: boolean;
  /** Rejects if a guarantee is broken. */
  run(options: RowOptions): Promise<Figures>;
  /** Mistakes in the sources; the short form of the row must notice each of them. */
  readonly bug?: Bug | readonly Bug[];
}
