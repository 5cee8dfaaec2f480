import Database from 'better-sqlite3';

const ROWS = 40;

/** A store's schema and rows, by table. */
export interface Content {
  readonly version: number;
  /** The SQL that made each table and index. */
  readonly schema: readonly string[];
  readonly tables: ReadonlyMap<string, readonly Readonly<Record<string, unknown>>[]>;
}

export function readContent(path: string): Content {
  const db = new Database(path);
  try {
    const schema = db
      .prepare<[], { name: string; type: string; sql: string | null }>(
        'SELECT name, type, sql FROM sqlite_schema ORDER BY name',
      )
      .all();
    const tables = schema
      .filter(({ type }) => type === 'table')
      .map(({ name }) => {
        const rows = db.prepare<[], Record<string, unknown>>(`SELECT * FROM "${name}"`).all();
        return [name, rows.toSorted(byText)] as const;
      });
    const check = String(db.pragma('integrity_check', { simple: true }));
    if (check !== 'ok') throw new Error(`integrity_check: ${check}`);
    return {
      version: Number(db.pragma('user_version', { simple: true })),
      schema: schema.map(({ name, sql }) => `${name}: ${sql}`),
      tables: new Map(tables),
    };
  } finally {
    db.close();
  }
}

function byText(a: unknown, b: unknown): number {
  return JSON.stringify(a) < JSON.stringify(b) ? -1 : 1;
}

/** Puts rows into every table, whatever tables there are: the n-th row of each refers to the n-th of the others. */
export function fill(db: Database.Database): void {
  const tables = db
    .prepare<[], string>(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid",
    )
    .pluck()
    .all();
  for (const table of tables) {
    const columns = db.pragma(`table_info("${table}")`) as readonly {
      name: string;
      type: string;
    }[];
    const insert = db.prepare(
      `INSERT INTO "${table}" VALUES (${columns.map(() => '?').join(', ')})`,
    );
    for (let n = 1; n <= ROWS; n += 1) {
      insert.run(columns.map(({ name, type }) => (type === 'INTEGER' ? n : `${name} ${n}`)));
    }
  }
}

/** Returns what a migration lost: values of columns that are there before and after it. */
export function lostValues(before: Content, after: Content): readonly string[] {
  return [...before.tables].flatMap(([table, rows]) => {
    const kept = after.tables.get(table);
    const [first] = kept ?? [];
    if (kept === undefined || table.startsWith('sqlite_')) return [];
    if (first === undefined) return rows.length > 0 ? [`all rows of ${table}`] : [];
    const columns = Object.keys(rows[0] ?? {}).filter((column) => column in first);
    return columns
      .filter((column) => values(rows, column) !== values(kept, column))
      .map((column) => `values of ${table}.${column}`);
  });
}

function values(rows: readonly Readonly<Record<string, unknown>>[], column: string): string {
  return rows
    .map((row) => JSON.stringify(row[column]))
    .toSorted()
    .join();
}
