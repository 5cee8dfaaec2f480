/** Values by parameter name; undefined is NULL. */
export type Parameters = Readonly<Record<string, string | number | undefined>>;

/**
 * What both engines answer by the same text. It calls its parameters `:name` and its tables `evalwatch.project` and so on. It may
 * have what only one engine needs: SQLite's `INDEXED BY`, PostgreSQL's `FOR UPDATE OF … SKIP LOCKED`. `gen_random_uuid()` is a new
 * token, `SELECT value FROM json_each(:name)` the texts of a JSON array, `value::json ->> 'field'` a text of an object in it,
 * `json_group_array(json_array(…))` a JSON array of rows. A name stands for one text, whose plan can be kept.
 */
export interface Db {
  /** @throws {StoreError} */
  read<Row>(name: string, text: string, parameters?: Parameters): Promise<readonly Row[]>;
}

/**
 * Statements that are made together, each of which can read what those before it return, by their names. PostgreSQL makes them
 * as one statement, in which none sees rows that another changes. SQLite makes them one after the other, in a transaction.
 */
export interface Change {
  readonly name: string;
  /** Texts by name. */
  readonly first?: Readonly<Record<string, string>>;
  /** The text whose rows are the answer. */
  readonly last: string;
}

/** Makes a change that is committed once this resolves. @throws {StoreError} */
export type Write = <Row>(change: Change, parameters: Parameters) => Promise<readonly Row[]>;

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

/** Returns the text for SQLite, which has no schemas, no row locks and no random UUIDs. */
export function forSqlite(text: string): string {
  return text
    .replaceAll('evalwatch.', '')
    .replaceAll('::json', '')
    .replaceAll(/ FOR UPDATE OF \w+ SKIP LOCKED/g, '')
    .replaceAll('gen_random_uuid()', 'lower(hex(randomblob(16)))');
}

/** Returns the text with `$1`, `$2` … for PostgreSQL, and the values of these parameters. */
export function forPostgres(
  text: string,
  parameters: Parameters,
): { readonly text: string; readonly values: readonly unknown[] } {
  const names: string[] = [];
  const numbered = text
    .replaceAll(/ INDEXED BY \w+/g, '')
    .replaceAll('json_each(', 'json_array_elements_text(')
    .replaceAll('json_group_array(', 'json_agg(')
    .replaceAll('json_array(', 'json_build_array(')
    .replaceAll(/(?<!:):(\w+)/g, (_, name: string) => {
      const known = names.indexOf(name);
      return `$${known === -1 ? names.push(name) : known + 1}`;
    });
  return { text: numbered, values: names.map((name) => parameters[name] ?? null) };
}
