import type { Statement } from '../database.ts';

const statements = new Map<string, Statement>();

/** Returns the statement of this name, whose text is built at the first call. The name decides the text. */
export function builtStatement(name: string, textOf: () => string): Statement {
  let statement = statements.get(name);
  if (statement === undefined) statements.set(name, (statement = { name, text: textOf() }));
  return statement;
}
