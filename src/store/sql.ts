/** Values by parameter name; undefined is NULL. */
export type Parameters = Readonly<Record<string, string | number | undefined>>;

/**
 * What both engines answer by the same text. It calls its parameters `:name` and its tables `evalwatch.project` and so on, and may
 * have SQLite's `INDEXED BY`. A name stands for one text, whose plan can be kept.
 */
export interface Db {
  /** @throws {StoreError} */
  read<Row>(name: string, text: string, parameters?: Parameters): Promise<readonly Row[]>;
}

/** Makes a {@link Db} of a function that answers texts. */
export function createDb(
  answer: (name: string, text: string, parameters: Parameters) => Promise<readonly unknown[]>,
): Db {
  return {
    read: async <Row>(name: string, text: string, parameters: Parameters = {}) =>
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the text says what its rows are
      (await answer(name, text, parameters)) as readonly Row[],
  };
}

/** Returns the text for SQLite, which has no schemas. */
export function forSqlite(text: string): string {
  return text.replaceAll('evalwatch.', '');
}

/** Returns the text with `$1`, `$2` … for PostgreSQL, and the names of these parameters. */
export function forPostgres(text: string): {
  readonly text: string;
  readonly names: readonly string[];
} {
  const names: string[] = [];
  const numbered = text
    .replaceAll(/ INDEXED BY \w+/g, '')
    .replaceAll(/(?<!:):(\w+)/g, (_, name: string) => {
      const known = names.indexOf(name);
      return `$${known === -1 ? names.push(name) : known + 1}`;
    });
  return { text: numbered, names };
}
