/** Executes a statement at this time of the server, epoch µs. */
export type Run = Holder['run'];
/** A method, so that a function may name the types of its values. */
interface Holder {
  run(values: readonly unknown[], nowUs: number): readonly object[];
}
/** Functions by the name of their statement (statements.ts). */
export type Statements = Readonly<Record<string, Run>>;
