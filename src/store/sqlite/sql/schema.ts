import Database from 'better-sqlite3';
import { StoreError } from '../../../monitor/errors.ts';
import type { Connection } from '../connection.ts';
import { schemaVersion } from './migrate.ts';

/** A table, index, trigger or view. */
interface SchemaObject {
  readonly type: string;
  readonly name: string;
  readonly table: string;
  /** Null for the indexes that SQLite creates by itself. */
  readonly sql: string | null;
}

/** Tables of ANALYZE, which only the query planner reads. */
const STATISTICS: readonly SchemaObject[] = [
  ['sqlite_stat1', 'CREATE TABLE sqlite_stat1(tbl,idx,stat)'] as const,
  ['sqlite_stat4', 'CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)'] as const,
].map(([name, sql]) => ({ type: 'table', name, table: name, sql }));

/** Maximum length of SQL that is compared; that of evalwatch is shorter. */
const MAX_SQL_LENGTH = 10_000;
const MAX_NAME_LENGTH = 100;
const MAX_SHOWN = 3;

/**
 * Describes how the schema of a store differs from what the migrations up to its version make. A foreign trigger, for example,
 * can undo writes, or settle failures that were never reported.
 * @throws {Error} of SQLite when the schema cannot be read
 */
export function findForeignSchema(
  db: Connection,
  migrations: readonly string[],
): readonly string[] {
  const made = schemaOf(migrations.slice(0, schemaVersion(db)));
  const tables = new Set(made.filter(({ type }) => type === 'table').map(({ name }) => name));
  const identify = ({ type, name }: SchemaObject) => `${type} ${name}`;
  const textOf = (object: SchemaObject) =>
    JSON.stringify([object.type, object.name, object.table, normalize(object.sql, tables)]);
  const found = readSchema(db);
  const known = new Set([...made, ...STATISTICS].map(textOf));
  const expected = new Set(made.map(identify));
  const present = new Set(found.map(identify));
  return [
    ...found
      .filter((object) => !known.has(textOf(object)))
      .map((object) =>
        expected.has(identify(object))
          ? `${describe(object)} is not as evalwatch makes it`
          : `${describe(object)} is not evalwatch's`,
      ),
    ...made
      .filter((object) => !present.has(identify(object)))
      .map((object) => `${describe(object)} is missing`),
  ];
}

/** Checks that only evalwatch has made the schema. @throws {StoreError} naming the differences */
export function assertOwnSchema(db: Connection, migrations: readonly string[], path: string): void {
  const findings = findForeignSchema(db, migrations);
  if (findings.length === 0) return;
  const more = findings.length - MAX_SHOWN;
  const list = findings.slice(0, MAX_SHOWN).join('; ') + (more > 0 ? `; and ${more} more` : '');
  throw new StoreError(
    'other',
    `the schema of ${path} was changed: ${list}. Undo that, or restore a backup`,
  );
}

/** Schemas that migrations make, by their SQL: one process can open many stores. */
const madeSchemas = new Map<string, readonly SchemaObject[]>();

function schemaOf(migrations: readonly string[]): readonly SchemaObject[] {
  const key = migrations.join('\n');
  const made = madeSchemas.get(key) ?? makeSchema(migrations);
  madeSchemas.set(key, made);
  return made;
}

function makeSchema(migrations: readonly string[]): readonly SchemaObject[] {
  const db = new Database(':memory:');
  try {
    for (const sql of migrations) db.exec(sql);
    return readSchema(db);
  } finally {
    db.close();
  }
}

function readSchema(db: Connection): readonly SchemaObject[] {
  const select = `SELECT CAST(type AS TEXT) AS type, CAST(name AS TEXT) AS name,
      CAST(tbl_name AS TEXT) AS "table", CAST(sql AS TEXT) AS sql FROM sqlite_schema`;
  return db.prepare<[], SchemaObject>(select).all();
}

const TOKEN =
  /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[^]*?\*\/|[\w$\u{80}-\u{10ffff}]+|[^ \t\n\f\r]/gu;

/**
 * Returns the same text for SQL that differs only in white space, comments, letter case, or the quotes around the name of a
 * table, which ALTER TABLE … RENAME adds.
 */
function normalize(sql: string | null, tables: ReadonlySet<string>): string | null {
  if (sql === null || sql.length > MAX_SQL_LENGTH) return sql;
  const tokens = sql.match(TOKEN) ?? [];
  return tokens
    .filter((token) => !token.startsWith('--') && !token.startsWith('/*'))
    .map((token) => {
      if (token.startsWith("'")) return token;
      const unquoted = token.startsWith('"') ? token.slice(1, -1) : token;
      return tables.has(unquoted) ? unquoted : toLowerAscii(token);
    })
    .join(' ');
}

/** Lowers ASCII letters only, as SQLite does: the Kelvin sign is not a k. */
function toLowerAscii(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

function describe({ type, name, table }: SchemaObject): string {
  const on = name === table ? '' : ` of ${quote(table)}`;
  return `${type} ${quote(name)}${on}`;
}

function quote(name: string): string {
  return JSON.stringify(name.slice(0, MAX_NAME_LENGTH));
}
