import { fileURLToPath } from 'node:url';
import { IN_CI } from '../test/support/debian-tool.ts';

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
  /** The only part of the row that runs. Default: all parts. */
  readonly part?: string | undefined;
  /** Days that the simulation plays. */
  readonly days?: number | undefined;
}

/** Says that a row cannot run on this machine, because something is missing. */
export class Unavailable extends Error {}

/** Returns what a row needs on this machine. @throws {Unavailable} if it is undefined; in CI another error, so that the row fails */
export function required<Thing>(what: string, thing: Thing | undefined): Thing {
  if (thing !== undefined) return thing;
  throw new (IN_CI ? Error : Unavailable)(`${what} is missing`);
}

/** A deliberate mistake: replacements of text in a file, by its path from src/. */
export interface Bug {
  readonly what: string;
  readonly file: string;
  readonly replace: readonly (readonly [text: string, by: string])[];
  /** The error of the row that notices it. */
  readonly notice: RegExp;
  /** The part of the row that notices it; the others do not run then. */
  readonly part?: string;
}

export type Figures = readonly (readonly [figure: string, value: string])[];

/** One kind of fault, and the proof that it does no harm. */
export interface Row {
  /** Name in the arguments of `scripts/proof.ts`, and of its file and folder. */
  readonly name: string;
  /** Folders and files that it judges, besides its own and those with its mistakes: paths in the repository. */
  readonly judges: readonly string[];
  /** Whether it gets another seed each time without `--seed`. */
  readonly drawsSeed?: boolean;
  /** Rejects if a guarantee is broken, and with {@link Unavailable} if it cannot run here. */
  run(options: RowOptions): Promise<Figures>;
  /** Mistakes in the sources; the short form of the row must notice each of them. */
  readonly bug?: Bug | readonly Bug[];
}
